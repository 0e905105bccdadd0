package finding

// Names of the detectors, which are values of the label detector.
const (
	DetectorLocation   = "location"   // rank CUSUMs of shift
	DetectorSpread     = "spread"     // rank CUSUMs of scale
	DetectorWilcoxon   = "wilcoxon"   // rank CUSUMs for skewed and heavy-tailed distributions
	DetectorFrequency  = "frequency"  // CUSUMs of how often an action, or an outcome of 0 or 1, occurs
	DetectorNovelty    = "novelty"    // values that do not occur in a baseline of one or few values
	DetectorRarity     = "rarity"     // CUSUMs of how often a quantity differs from its commonest value
	DetectorPrediction = "prediction" // CUSUMs of how much better the last units predict the actions than the baseline does
	DetectorGuaranteed = "guaranteed" // e-detector of a given mean
	DetectorGuard      = "guard"      // a limit that people set
	DetectorKS         = "ks"         // sliding Kolmogorov-Smirnov, also without a threshold

	DetectorADWIN       = "adwin"        // ADWIN, a gauge that never pages
	DetectorPageHinkley = "page_hinkley" // Page-Hinkley, a gauge that never pages
)

// Measures of how far the actions have moved, which are values of the label measure.
const (
	MeasurePSI = "psi" // population stability index, nats
	MeasureJS  = "js"  // Jensen-Shannon divergence, bits
	MeasureG   = "g"   // likelihood-ratio statistic
)
