package cli

import (
	"crypto/rand"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

func newRetrainAskCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	var body wire.RetrainOrder
	cmd := &cobra.Command{
		Use:   "request POLICY --recipe RECIPE --target TARGET --why TEXT [--incident INCIDENT]",
		Short: "Request a retraining",
		Long: "You can request a retraining even during a trigger's cooldown, while the policy's breaker is open, or if the cause requires\n" +
			"a manual decision. With --incident, the request includes the evidence of that incident; without it, the request contains no\n" +
			"alarms. A policy can have only one unfinished request at a time.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completePolicies(service),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := body.Reason.Check(); err != nil {
				return err
			}
			if body.Incident != "" {
				var err error
				if body.Incident, err = fullID(cmd.Context(), service, anIncident, body.Incident); err != nil {
					return err
				}
			}
			body.Policy = args[0]
			if body.ID == "" {
				body.ID = rand.Text()
			}
			var q shownRequest
			if err := service.Post(cmd.Context(), body, &q, "retrain-requests"); err != nil {
				return err
			}
			return c.Print(&q, q.text)
		},
	}
	cmd.Flags().StringVar(&body.Recipe, "recipe", "", "recipe to use (required)")
	cmd.Flags().StringVar(&body.Target, "target", "", "target to deliver the request to (required)")
	cmd.Flags().StringVar(&body.Incident, "incident", "", "id of the incident that the retraining is for")
	cmd.Flags().StringVar(&body.ID, "id", "", "id of the new request; a script that sets it and runs twice creates only one request")
	client.ReasonFlags(cmd, &body.Reason)
	completeFlag(cmd, "incident", completeIDs(service, anIncident, 1))
	completeFlag(cmd, "recipe", completeUsed(service, func(q *ledger.Request) string { return q.Recipe }))
	completeFlag(cmd, "target", completeUsed(service, func(q *ledger.Request) string { return q.Target }))
	return cmd
}

func newLedgerCommand(c *terminal.Console, service *client.Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ledger [--policy POLICY] [--since TIME] ...",
		Short: "Print the ledger as NDJSON: each request with its history, deliveries and decisions",
		Long:  "Prints one JSON object per line, newest request first. The flags filter requests as in retrain list.",
		Args:  cobra.NoArgs,
	}
	chosen := searchFlags(cmd, service)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		query, err := chosen(cmd.Context())
		if err != nil {
			return err
		}
		query.Set("format", "ndjson")
		return service.CopyAll(cmd.Context(), c.Out, query, "retrain-requests")
	}
	return cmd
}
