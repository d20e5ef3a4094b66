// Command peer times gnark-crypto on the kernels that cuzk bench times.
//
// It is no test of gnark-crypto, and cuzk links none of it. It prints the seconds of each run, after
// one that is not measured.
//
//	peer msm-g1|msm-g2|ntt LOG RUNS THREADS
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
)

// scalars returns random values of full size.
func scalars(count int) ([]fr.Element, error) {
	values := make([]fr.Element, count)
	for i := range values {
		if _, err := values[i].SetRandom(); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// distinctMax is the number of distinct points, as in cuzk bench: to make a point costs as much as
// a hundred additions.
const distinctMax = 1 << 14

// repeated returns count points, which are the multiples of a generator again and again.
func repeated[P any](count int, multiples func([]fr.Element) []P) ([]P, error) {
	exponents, err := scalars(min(count, distinctMax))
	if err != nil {
		return nil, err
	}
	points := make([]P, 0, count)
	for distinct := multiples(exponents); len(points) < count; {
		points = append(points, distinct...)
	}
	return points[:count], nil
}

// kernel returns the call that is measured.
func kernel(name string, log, threads int) (func() error, error) {
	count := 1 << log
	config := ecc.MultiExpConfig{NbTasks: threads}
	values, err := scalars(count)
	if err != nil {
		return nil, err
	}
	_, _, g1, g2 := bls.Generators()
	switch name {
	case "msm-g1":
		points, err := repeated(count, func(exponents []fr.Element) []bls.G1Affine {
			return bls.BatchScalarMultiplicationG1(&g1, exponents)
		})
		if err != nil {
			return nil, err
		}
		return func() error {
			_, err := new(bls.G1Affine).MultiExp(points, values, config)
			return err
		}, nil
	case "msm-g2":
		points, err := repeated(count, func(exponents []fr.Element) []bls.G2Affine {
			return bls.BatchScalarMultiplicationG2(&g2, exponents)
		})
		if err != nil {
			return nil, err
		}
		return func() error {
			_, err := new(bls.G2Affine).MultiExp(points, values, config)
			return err
		}, nil
	case "ntt":
		domain := fft.NewDomain(uint64(count))
		if domain.Cardinality != uint64(count) {
			return nil, fmt.Errorf("no domain of 2^%d points", log)
		}
		return func() error {
			domain.FFT(values, fft.DIF, fft.WithNbTasks(threads))
			return nil
		}, nil
	}
	return nil, fmt.Errorf("there is no kernel %q", name)
}

func run(arguments []string) error {
	if len(arguments) != 4 {
		return fmt.Errorf("usage: peer msm-g1|msm-g2|ntt LOG RUNS THREADS")
	}
	var numbers [3]int
	for i, text := range arguments[1:] {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > 1<<20 {
			return fmt.Errorf("%q is no number of a size, of runs or of threads", text)
		}
		numbers[i] = number
	}
	log, runs, threads := numbers[0], numbers[1], numbers[2]
	if log > 28 {
		return fmt.Errorf("2^%d is more than fits memory", log)
	}
	runtime.GOMAXPROCS(threads)
	call, err := kernel(arguments[0], log, threads)
	if err != nil {
		return err
	}
	if err := call(); err != nil {
		return err
	}
	for range runs {
		debug.FreeOSMemory()
		started := time.Now()
		if err := call(); err != nil {
			return err
		}
		fmt.Printf("%.6f\n", time.Since(started).Seconds())
	}
	return nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(2)
	}
}
