package secrets

import (
	"slices"
	"strings"
	"testing"
)

func TestCredentialsInPlainText(t *testing.T) {
	letters := strings.Repeat("aB3d", 15)
	for _, text := range []string{
		"--password=hunter", "mysql --db-password=hunter2", "PASSWORD=hunter", "export DB_PASSWORD=abc", "password=hunter2", "password: hunter2",
		`password = "hunter"`, "'passwd': 'hunter'", "https://me:hunter2@example.com", "redis://:hunter2@host:6379", "https://a:b:c@host",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "hf_" + letters[:34], "sk-proj-" + letters[:40], "sk-ant-api03-" + letters[:40], "github_pat_" + letters[:30],
		"Authorization: Bearer " + letters[:20], "AIza" + letters[:35], "WANDB_API_KEY=" + letters[:40], "--token=abc12345", "AWS_SECRET_ACCESS_KEY=" + letters[:40],
		"-----BEGIN RSA PRIVATE KEY-----", "ghp_" + letters[:36],
		"AWS_SECRET_ACCESS_KEY: " + letters[:40], "API_KEY: abcd1234", `"OPENAI_API_KEY": "abcd1234"`, "SIGNING_KEY=abcd1234", "CLIENT_SECRET: abcd1234", "DB_PASS: hunter2",
		"DB_PASS=hunter", `DB_PASS: "hunter"`, "mysql --password hunter2", "git clone https://0123456789abcdef0123456789abcdef01234567@github.com/acme/x.git",
		"curl -s -u me:hunter https://example.com", "curl --user=me:hunter x", "wandb login 0123456789abcdef0123456789abcdef01234567", "sk_live_" + letters[:24],
		"push --token abcd1234",
	} {
		if !Found(text) {
			t.Errorf("%s is not found", text)
		}
		if hidden := Hide("must not be " + text); Found(hidden) || strings.Contains(hidden, "hunter") || !strings.HasPrefix(hidden, "must not be ") {
			t.Errorf("%s is shown as %s", text, hidden)
		}
	}
	for _, text := range []string{
		"--password=$PASSWORD", `--password="$PASSWORD"`, "--password-stdin", "--password-file=/run/x", "PASSWORD_FILE=/run/secrets/db", "PASSWORD=${PASSWORD:?}",
		"password: str = None", "password=password", `password = os.environ["DB_PASSWORD2"]`, "password: ${{ secrets.REGISTRY_PASSWORD }}",
		"token_file: /etc/rewardwatch/github.token", "--token=/run/secrets/tokens/of-the-service", "eos_token_id=50256", "--max-tokens=1024", "task-0123456789012345678901",
		"http://127.0.0.1:9464", "http://a:80, b@c", "Authorization: Bearer $TOKEN", "scikit sk-learn-compatible-estimators", "--secret id=npm", "git@github.com:acme/x.git",
		"CACHE_KEY: pip-3.11-2026-11-28", "docker run -u 1000:1000 image2", `curl -u "$USER:$PASSWORD" x2`, "API_KEY: ${{ secrets.API_KEY2 }}", "BYPASS=12345", "wandb login $KEY",
		"--password must not be given", "API_KEY: str", "https://example.com/a-path-that-is-long-enough-1@2", "COMPASS: 360-degrees",
	} {
		if Found(text) || Hide(text) != text {
			t.Errorf("%s is found", text)
		}
	}
}

func TestKeysAndOptionsSayWhatAValueIs(t *testing.T) {
	got := InValues(map[string]string{
		"a.command[0]": "mysql", "a.command[1]": "--password", "a.command[2]": "hunter", "a.command[3]": "--user", "a.command[4]": "hunter",
		"a.kwargs.password": "hunter", "a.kwargs.policy": "hunter", "a.secrets[0]": "THE_LONGEST_NAME_OF_A_CREDENTIAL", "b[0].c": "hf_" + strings.Repeat("a", 34),
		"d[0]": "--password", "d[1]": "$PASSWORD",
		"e.env.AWS_SECRET_ACCESS_KEY": "abcd1234", "e.env.API_KEY": "abcd1234", "e.env.DB_PASS": "hunter", "e.env.CACHE_KEY": "abcd1234",
		"f[0]": "curl", "f[1]": "-u", "f[2]": "me:hunter", "g[0]": "wandb", "g[1]": "login", "g[2]": "0123456789abcdef0123456789abcdef01234567",
		"h[0]": "docker", "h[1]": "-u", "h[2]": "1000:1000", "trigger.token_file": "secret-files-of-this-project/token",
	})
	if want := []string{"a.command[2]", "a.kwargs.password", "b[0].c", "e.env.API_KEY", "e.env.AWS_SECRET_ACCESS_KEY", "e.env.DB_PASS", "f[2]", "g[2]"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Further services have their own form of credentials, and a name before a value may show that it is one. Hashes,
// digests and commits are not credentials.
func TestCredentialsOfMoreServices(t *testing.T) {
	hex, mixed := strings.Repeat("0a1b2c3d4e", 4), strings.Repeat("aB3+dE6/", 10)
	for _, text := range []string{
		"wandb_key=" + hex, "dckr_pat_" + mixed[:2] + strings.Repeat("x9", 12), "DefaultEndpointsProtocol=https;AccountKey=" + mixed + "==",
		`curl -H "X-Api-Key: ` + hex[:32] + `" https://a.example`, "hvs." + strings.Repeat("a1", 14), "dapi" + hex[:32], "dop_v1_" + hex + hex[:24],
		"SharedAccessKey=" + mixed, "Authorization: Basic dXNlcjpwYXNzd29yZA==", "glrt-" + strings.Repeat("a1", 10), "xapp-1-" + strings.Repeat("A1", 12),
		"Private-Token: " + strings.Repeat("a1", 10), "client_key: '" + hex + "'",
		"mysql -u ship -pWinter2027 -P 3306", "cd a && /usr/bin/mysqldump -pWinter2027 ship", "docker exec -i db mysql -uroot -pWinter", `sh -c "mysql -pWinter"`,
		"sudo -u ship mariadb-dump -p'Winter2027'", "A=1 mysqladmin -pWinter2027 -print", "kubectl exec db -- mysql -pWinter",
	} {
		if !Found(text) {
			t.Errorf("%s is not found", text)
		}
	}
	for _, text := range []string{
		"actions/checkout@" + hex, "python@sha256:" + hex + hex[:24], "git checkout " + hex, "numpy==2.4.6 --hash=sha256:" + hex + hex[:24], "sha256: " + hex,
		"cache_key: " + hex, "cache-key=" + hex, "partition_key=" + hex, "public_key: " + mixed, "commit: " + hex, "model.monkey: 3", "--seed-key=7", "key: status-token",
		"keyboard: " + hex, "X-Request-Id: " + hex[:32], "secretName: retrain-a-deploy", "author: " + hex, "tokens-per-second: 1000", "token_file: /run/secrets/gh",
		"ssh mysql-host -p2222 deploy", "docker run --name mysql -p3306:3306 img", "docker run --name mysql -p127.0.0.1:3306:3306/tcp img", "python train.py --logger mysql -print 5",
		"mysqladmin ping -protocol tcp", "mysql -p3306", "mysql -p$PASSWORD", "exec python train.py --logger mysql -policy mlp",
	} {
		if Found(text) {
			t.Errorf("%s is no credential", text)
		}
	}
	values := map[string]string{"requirements[0]": "numpy==2.4.6", "requirements[1]": "--index-url https://u:word@a.example/simple", "requirements[2]": "scipy==1.17.1"}
	if got := InValues(values); len(got) != 1 || got[0] != "requirements[1]" {
		t.Errorf("%v, want only the address", got)
	}
}
