package retrain

import "testing"

// storage makes an empty ledger for a test, and gives what the configuration says of it.
type storage func(t *testing.T) LedgerConfig

func TestLedgerOnSQLite(t *testing.T) { testLedger(t, onSQLite) }

// testLedger runs every test that needs a ledger; TestPostgreSQL runs the same ones.
func testLedger(t *testing.T, on storage) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, storage)
	}{
		{"ConsiderIsIdempotent", testConsiderIsIdempotent},
		{"ConsiderConcurrently", testConsiderConcurrently},
		{"WhatOrdersNothingIsRecordedOnce", testWhatOrdersNothingIsRecordedOnce},
		{"CooldownAndOpenRequest", testCooldownAndOpenRequest},
		{"CooldownIsOfTheTrigger", testCooldownIsOfTheTrigger},
		{"ExpiredRequestBlocksNothing", testExpiredRequestBlocksNothing},
		{"CauseThatNeedsAPersonWithdraws", testCauseThatNeedsAPersonWithdraws},
		{"AcceptedIncidentWithdraws", testAcceptedIncidentWithdraws},
		{"LedgerIsAppendOnly", testLedgerIsAppendOnly},
		{"LedgerKeepsTheRulesItself", testLedgerKeepsTheRulesItself},
		{"LedgerOfANewerBuildIsRefused", testLedgerOfANewerBuildIsRefused},
		{"OpenTwiceOnOneRegistry", testOpenTwiceOnOneRegistry},
		{"UnsettledCauseWaits", testUnsettledCauseWaits},
		{"ReceiverFaultIsRetriedUnderTheSameID", testReceiverFaultIsRetriedUnderTheSameID},
		{"AnswerIsKeptInPart", testAnswerIsKeptInPart},
		{"GoneDisablesTheTarget", testGoneDisablesTheTarget},
		{"ExpiryEndsTheRetries", testExpiryEndsTheRetries},
		{"RetryAfterBeyondTheExpiry", testRetryAfterBeyondTheExpiry},
		{"ExpiresWhileNothingRuns", testExpiresWhileNothingRuns},
		{"OneDeliveryAtATimeForATarget", testOneDeliveryAtATimeForATarget},
		{"CrashBetweenAnswerAndRecord", testCrashBetweenAnswerAndRecord},
		{"RetryTimeSurvivesARestart", testRetryTimeSurvivesARestart},
		{"ShutdownFinishesTheAttemptInFlight", testShutdownFinishesTheAttemptInFlight},
		{"LateSuccessOfAWithdrawnRequest", testLateSuccessOfAWithdrawnRequest},
		{"TargetLeavesTheConfiguration", testTargetLeavesTheConfiguration},
		{"TargetLeavesTheConfigurationBeforeTheApproval", testTargetLeavesTheConfigurationBeforeTheApproval},
		{"SecretsAreReadAtEachAttempt", testSecretsAreReadAtEachAttempt},
		{"DeliveryMetrics", testDeliveryMetrics},
		{"RealSockets", testRealSockets},
		{"SeveralInstances", testSeveralInstances},
		{"ClaimIsHeldByOne", testClaimIsHeldByOne},
		{"CircuitIsTriedByOne", testCircuitIsTriedByOne},
		{"WithdrawnInFlight", testWithdrawnInFlight},
		{"StartsAtOnce", testStartsAtOnce},
		{"TextWithNUL", testTextWithNUL},
		{"OrderThatBreaksItsPromise", testOrderThatBreaksItsPromise},
		{"RequestOfABuildBeforeRecipes", testRequestOfABuildBeforeRecipes},
		{"RequestByItsID", testRequestByItsID},
		{"JobTellsOfItself", testJobTellsOfItself},
		{"TelemetryTellsOfTheVersion", testTelemetryTellsOfTheVersion},
		{"AwaitedWhileAnotherAsks", testAwaitedWhileAnotherAsks},
		{"JobCorrectsTheVersionOfTelemetry", testJobCorrectsTheVersionOfTelemetry},
		{"Rollback", testRollback},
		{"RollbackWithoutATarget", testRollbackWithoutATarget},
		{"RollbackWaitsItsTurn", testRollbackWaitsItsTurn},
		{"ReportThatIsMissingSomething", testReportThatIsMissingSomething},
		{"JobTellsBeforeTheAnswer", testJobTellsBeforeTheAnswer},
		{"StatesEndByThemselves", testStatesEndByThemselves},
		{"PeopleDecide", testPeopleDecide},
		{"UnfinishedRequestIsRejected", testUnfinishedRequestIsRejected},
		{"Resend", testResend},
		{"CircuitOpens", testCircuitOpens},
		{"LinkDecidesOnce", testLinkDecidesOnce},
		{"LinkThatIsNotGenuine", testLinkThatIsNotGenuine},
		{"LinkEndsInTime", testLinkEndsInTime},
		{"LinkOfAllInstances", testLinkOfAllInstances},
		{"WaitingRequestIsAnnounced", testWaitingRequestIsAnnounced},
		{"UnfinishedRequests", testUnfinishedRequests},
		{"DeltaOfARequest", testDeltaOfARequest},
		{"ApprovalWhereConfigured", testApprovalWhereConfigured},
		{"Lasting", testLasting},
		{"LastingWithoutAClock", testLastingWithoutAClock},
		{"Schedule", testSchedule},
		{"SlotsMissed", testSlotsMissed},
		{"SlotOfABusyPolicy", testSlotOfABusyPolicy},
		{"ScheduleOfSeveralInstances", testScheduleOfSeveralInstances},
		{"Ask", testAsk},
		{"AskAboutAnIncident", testAskAboutAnIncident},
		{"OrderWithoutAnIncident", testOrderWithoutAnIncident},
		{"Breaker", testBreaker},
		{"Search", testSearch},
		{"SearchByPages", testSearchByPages},
		{"SearchOfAnEarlierLedger", testSearchOfAnEarlierLedger},
		{"Records", testRecords},
		{"CommandMakesAVersion", testCommandMakesAVersion},
		{"CommandFails", testCommandFails},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, on) })
	}
}
