package ledger

import (
	"fmt"
	"os"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// DefaultSQLite is the default of Config.SQLite.
const DefaultSQLite = "data/ledger.db"

// Config configures the database of the ledger: a SQLite file, or PostgreSQL if a URL is set.
type Config struct {
	SQLite          string `yaml:"sqlite"`            // database file, whose directory is created if missing
	PostgresURLFile string `yaml:"postgres_url_file"` // file with the URL, such as `postgres://user:password@host:port/database?sslmode=verify-full`
	PostgresURLEnv  string `yaml:"postgres_url_env"`  // environment variable with the URL
}

// OnPostgreSQL reports whether several instances can share the ledger.
func (c Config) OnPostgreSQL() bool { return c.PostgresURLFile != "" || c.PostgresURLEnv != "" }

// Check reports what is wrong with the configuration. An unnamed SQLite file counts as the default one.
func (c Config) Check(report func(key, msg string)) {
	switch {
	case !c.OnPostgreSQL() && c.SQLite == "":
		report("sqlite", "must name a file")
	case c.OnPostgreSQL() && c.SQLite != "" && c.SQLite != DefaultSQLite:
		report("sqlite", "cannot be combined with PostgreSQL")
	}
	if c.PostgresURLFile != "" && c.PostgresURLEnv != "" {
		report("postgres_url_file", "cannot be combined with postgres_url_env")
	}
}

// postgresURL reads the connection URL from its configured place.
func (c Config) postgresURL() (string, error) {
	if c.PostgresURLEnv != "" {
		text := strings.TrimSpace(os.Getenv(c.PostgresURLEnv))
		if text == "" {
			return "", fmt.Errorf("environment variable %s, which must contain the PostgreSQL URL, is empty", c.PostgresURLEnv)
		}
		return text, nil
	}
	text, err := ingest.ReadSecretFile(c.PostgresURLFile)
	if err != nil {
		return "", fmt.Errorf("read the PostgreSQL URL: %w", err)
	}
	return strings.TrimSpace(text), nil
}
