package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// createdSecret is the result of the secret command.
type createdSecret struct {
	File string `json:"file"`
	Kind string `json:"kind"`
}

func newSecretCommand(c *terminal.Console) *cobra.Command {
	const token, webhook = "token", "webhook"
	var kind string
	cmd := &cobra.Command{
		Use:   "secret [--kind token|webhook] FILE",
		Short: "Create a file with a random token or webhook secret",
		Long: "Writes a new random secret to FILE, which must not exist yet, with mode 0600. Use a token for http.token_file and the other\n" +
			"*_token_file keys. Use a webhook secret for the secret_file of a retrain target; the receiver needs the same secret.",
		Example: "  rewardwatch secret /etc/rewardwatch/token",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var text string
			switch kind {
			case token:
				text = rand.Text() + rand.Text()
			case webhook:
				text = target.NewSecret()
			default:
				return fmt.Errorf("--kind %q is neither %s nor %s", kind, token, webhook)
			}
			if err := createSecret(args[0], text); err != nil {
				return err
			}
			return c.Print(createdSecret{args[0], kind}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "created %s\n", terminal.Printable(args[0]))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&kind, "kind", token, "kind of secret: token or webhook")
	completeFlag(cmd, "kind", completeWords([]string{token, webhook}))
	return cmd
}

// createSecret writes a line to a new file that only its owner can read. It never replaces a file, because the secret
// in it may be in use.
func createSecret(file, line string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists: choose a new file, or remove this one if its secret is no longer used", file)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, line+"\n")
	return errors.Join(err, f.Close())
}
