package retrain

import "testing"

func TestLedgerOnSQLite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	testLedger(t, onSQLite)
}

// testLedger runs every test that needs a ledger; TestE2EPostgreSQL runs the same ones.
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
		{"OpenTwiceOnOneRegistry", testOpenTwiceOnOneRegistry},
		{"UnsettledCauseWaits", testUnsettledCauseWaits},
		{"OrdersOfALearner", testOrdersOfALearner},
		{"OrdersNeedALearner", testOrdersNeedALearner},
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
		{"ContractRelativeToTheBaseline", testContractRelativeToTheBaseline},
		{"DriftedDataIsCutAgain", testDriftedDataIsCutAgain},
		{"UnfinishedRequestIsRejected", testUnfinishedRequestIsRejected},
		{"Resend", testResend},
		{"DoSeen", testDoSeen},
		{"CircuitOpens", testCircuitOpens},
		{"HangingTargetHoldsUpNoOther", testHangingTargetHoldsUpNoOther},
		{"FinishedJobsAreDropped", testFinishedJobsAreDropped},
		{"RequestWithoutAJob", testRequestWithoutAJob},
		{"RequestWithTwoJobs", testRequestWithTwoJobs},
		{"RequestIsDeliveredAtOnce", testRequestIsDeliveredAtOnce},
		{"JobOfAnUnknownTarget", testJobOfAnUnknownTarget},
		{"OrderThatPanicsIsGivenUp", testOrderThatPanicsIsGivenUp},
		{"RetriesInAnyZone", testRetriesInAnyZone},
		{"LeaseOfTheDead", testLeaseOfTheDead},
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
		{"AskAboutAGuard", testAskAboutAGuard},
		{"OrderWithoutAnIncident", testOrderWithoutAnIncident},
		{"Breaker", testBreaker},
		{"Search", testSearch},
		{"SearchByPages", testSearchByPages},
		{"Records", testRecords},
		{"SearchForManyWords", testSearchForManyWords},
		{"WaitingForTheLedger", testWaitingForTheLedger},
		{"CommandMakesAVersion", testCommandMakesAVersion},
		{"CommandFails", testCommandFails},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, on) })
	}
}
