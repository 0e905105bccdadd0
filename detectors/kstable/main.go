// Command kstable simulates the thresholds of the sliding Kolmogorov-Smirnov detector and writes them as Go source.
//
// A cell of the table belongs to a baseline size m, a window and a wanted ARL0, the mean number of units to the first
// window at or beyond the threshold without a change. The statistic is distribution-free, so baselines and values are
// uniform. How often a threshold is reached depends on the baseline; the cell holds the threshold that keeps the ARL0
// for 99 % of baselines. ARL0 is the size of a clump, divided by the probability that a window is at or beyond the
// threshold. A clump is the units at or beyond the threshold per first passage over it. The two are determined as
// follows:
//
//   - the probability is computed exactly for each baseline (see exceedance): all baselines are ranked without noise, so
//     that the 99% point does not mix the baselines with the randomness of their streams;
//   - the clump's size comes from streams against the baselines around the 99% point, each with its own, in which first
//     passages over a ladder of thresholds are counted (see passages). It depends on the threshold and hardly on the
//     baseline; a power of the threshold is fitted to it (see fitClump).
//
// With -verify, first passages alone check the committed table, for example at an ARL0 of ten million:
//
//	go run ./kstable -verify 1e7 -windows 200 -sizes 500 -baselines 1000 -length 30000000 -seed 2
//
// Seeds are fixed: a run with the same options produces the same numbers on any number of cores.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstable:", err)
		os.Exit(1)
	}
}

// options are the parameters and the accuracy of the simulation.
type options struct {
	windows, sizes []int
	levels         []float64 // ARL0
	plan           plan
	output         string  // file; "" for none
	verify         float64 // ARL0; 0 for none
}

func run(args []string, out io.Writer) error {
	opts, err := parse(args)
	if err != nil {
		return err
	}
	if opts.verify > 0 {
		return verifyAll(opts, out)
	}
	table, err := simulateAll(opts, out)
	if err != nil || opts.output == "" {
		return err
	}
	source, err := render(opts, table, args)
	if err != nil {
		return err
	}
	return os.WriteFile(opts.output, source, 0o644)
}

func parse(args []string) (options, error) {
	flags := flag.NewFlagSet("kstable", flag.ContinueOnError)
	windows := flags.String("windows", "50,100,200,400", "`window` sizes")
	sizes := flags.String("sizes", "100,250,500,1000,2000,4000", "baseline `sizes`")
	levels := flags.String("levels", "500,1000,2000,5000,1e4,2e4,5e4,1e5,2e5,5e5,1e6,1e7,1e8,1e9", "wanted `ARL0`, ascending")
	var opts options
	flags.IntVar(&opts.plan.baselines, "baselines", 5000, "baselines of each size and window")
	flags.IntVar(&opts.plan.length, "length", 2_000_000, "units per stream; 2% of the baselines get a stream")
	flags.Uint64Var(&opts.plan.seed, "seed", 1, "seed")
	flags.StringVar(&opts.output, "o", "", "write Go source to `file`; by default, only print the rows")
	flags.Float64Var(&opts.verify, "verify", 0, "instead of creating a table, count how often the thresholds of the existing table are crossed for this `ARL0`")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	var errs [3]error
	opts.windows, errs[0] = parseList(*windows, parseSize)
	opts.sizes, errs[1] = parseList(*sizes, parseSize)
	opts.levels, errs[2] = parseList(*levels, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	return opts, errors.Join(append(errs[:], opts.plan.check())...)
}

func parseList[T any](list string, parse func(string) (T, error)) ([]T, error) {
	var values []T
	for field := range strings.SplitSeq(list, ",") {
		v, err := parse(field)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// parseSize bounds sizes so that the product of two of them stays within what SlidingKS compares exactly.
func parseSize(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && (n < 1 || n > 1<<15) {
		err = fmt.Errorf("%d is not between 1 and %d", n, 1<<15)
	}
	return n, err
}

// simulateAll returns the thresholds by window, size and level, and prints each row when it is complete.
func simulateAll(opts options, out io.Writer) ([][][]float64, error) {
	table := make([][][]float64, len(opts.windows))
	for i, window := range opts.windows {
		for _, m := range opts.sizes {
			row, err := opts.plan.row(m, window, opts.levels)
			if err != nil {
				return nil, fmt.Errorf("m=%d, window %d: %w", m, window, err)
			}
			table[i] = append(table[i], row)
			fmt.Fprintf(out, "window %d, m %d: %.4f\n", window, m, row)
		}
	}
	return table, nil
}

// render returns the table as the source of package detectors.
func render(opts options, table [][][]float64, args []string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated by \"go run ./kstable %s\" in detectors (make ks-table); DO NOT EDIT.\n\npackage detectors\n\n", strings.Join(args, " "))
	fmt.Fprintf(&b, "// ksTable holds the thresholds of KSThreshold: the 99%% point over %d simulated baselines a row. Read only.\n", opts.plan.baselines)
	fmt.Fprintf(&b, "var ksTable = ksThresholds{\nwindows: %s,\nsizes: %s,\nlevels: %s,\nd: [][][]float64{\n", goSlice(opts.windows), goSlice(opts.sizes), goSlice(opts.levels))
	for i, rows := range table {
		fmt.Fprintf(&b, "{ // window %d\n", opts.windows[i])
		for _, row := range rows {
			fields := make([]string, len(row))
			for j, d := range row {
				fields[j] = strconv.FormatFloat(d, 'f', 4, 64)
			}
			fmt.Fprintf(&b, "{%s},\n", strings.Join(fields, ", "))
		}
		b.WriteString("},\n")
	}
	b.WriteString("},\n}\n")
	return format.Source(b.Bytes())
}

func goSlice[T int | float64](values []T) string {
	return strings.ReplaceAll(fmt.Sprintf("%#v", values), "main.", "")
}
