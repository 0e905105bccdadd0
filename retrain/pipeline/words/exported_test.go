package words

import "testing"

func TestCommandsThatReadTheExport(t *testing.T) {
	for _, test := range []struct {
		words []string
		want  int
	}{
		{[]string{"python", "train.py", "--data", "/work/experience.parquet"}, 3},
		{[]string{"python", "train.py", "--data=/work/experience.parquet"}, 2},
		{[]string{"sh", "-c", "python train.py --data \"$WORK/experience.parquet\" --out \"$WORK\""}, 2},
		{[]string{"sh", "-c", "cd a && python train.py \"${WORK}\"/experience.parquet"}, 2},
		{[]string{"sh", "-c", "cp data/a.parquet \"$WORK/experience.parquet\" && python train.py \"$WORK/experience.parquet\""}, -1},
		{[]string{"sh", "-c", "curl -fo \"$WORK/experience.parquet\" $URL; python train.py"}, -1},
		{[]string{"sh", "-c", "dump > $WORK/experience.parquet; python train.py"}, -1},
		{[]string{"sh", "-c", "if [ -f \"$WORK/experience.parquet\" ]; then python offline.py \"$WORK/experience.parquet\"; fi"}, -1},
		{[]string{"python", "collect.py", "--output", "/work/experience.parquet"}, -1},
		{[]string{"cp", "data.parquet", "/work/experience.parquet"}, -1},
		{[]string{"python", "train.py", "--data", "/data/experience.parquet"}, -1},
		{[]string{"python", "train.py"}, -1},
	} {
		if got := ReadsExport(test.words); got != test.want {
			t.Errorf("%q: %d, want %d", test.words, got, test.want)
		}
	}
	if got := ReadsExport([]string{"cat", "/work/experience.parquet"}, []string{"python", "train.py", "--keep", "/work/experience.parquet"}); got != -1 {
		t.Errorf("after a command that may write it: %d", got)
	}
}
