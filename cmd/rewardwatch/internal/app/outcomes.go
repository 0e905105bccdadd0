package app

import (
	"context"
	"errors"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
)

// Awaited implements outcomes.
func (a *App) Awaited(ctx context.Context, policy string) (ledger.Verification, bool) {
	if a.retrain == nil {
		return ledger.Verification{}, false
	}
	return a.retrain.Awaited(ctx, policy)
}

// Appeared implements outcomes.
func (a *App) Appeared(ctx context.Context, request, version string) (bool, error) {
	if a.retrain == nil {
		return false, nil
	}
	_, err := a.retrain.Report(ctx, request, retrain.Report{State: retrain.JobSucceeded, Version: version, By: retrain.ByTelemetry})
	return stillAwaited(err)
}

// Concluded implements outcomes.
func (a *App) Concluded(ctx context.Context, request string, v outcome.Verdict) (outcome.Consequence, error) {
	if a.retrain == nil {
		return outcome.NothingFollows, nil
	}
	q, err := a.retrain.Conclude(ctx, request, v)
	awaited, err := stillAwaited(err)
	switch {
	case !awaited, q.Kind != ledger.KindRetrain: // other orders produce nothing that could be promoted or rolled back
		return outcome.NothingFollows, err
	case v.State == ledger.StateMet && a.cfg.Retrain.OnMet == retrain.OnMetPromote:
		return outcome.Promotes, nil
	case v.State == ledger.StateMissed && a.cfg.Retrain.Rollback != "":
		return outcome.Compares, nil
	}
	return outcome.NothingFollows, nil
}

// Worsened implements outcomes.
func (a *App) Worsened(ctx context.Context, s outcome.Setback) error {
	if a.retrain == nil {
		return nil
	}
	if s.To == "" {
		a.log.Warn().Str("request", s.Request).Str("reason", "the previous version is unknown").Msg("a retraining made the policy worse, but no rollback was requested")
		return nil
	}
	err := a.retrain.RollBack(ctx, s)
	if errors.Is(err, ledger.ErrUnknownRequest) { // the request belongs to another ledger
		a.log.Warn().Err(err).Msg("a retraining made the policy worse, but no rollback was requested")
		return nil
	}
	return err
}

// stillAwaited returns false without an error if the request was closed meanwhile or has another version, and an error
// if it could not be changed.
func stillAwaited(err error) (bool, error) {
	var closed *ledger.StateError
	if errors.As(err, &closed) || errors.Is(err, ledger.ErrUnknownRequest) || errors.Is(err, retrain.ErrOtherVersion) {
		return false, nil
	}
	return err == nil, err
}

// learns reports whether a policy learns continuously.
func (a *App) learns(policy string) bool {
	cfg, watched := a.cfg.Settings().Policy(policy)
	return watched && cfg.Learning == watch.LearningContinuous
}
