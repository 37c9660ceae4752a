package ingest

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

func TestCanonicalInt(t *testing.T) {
	for _, s := range []string{"0", "7", "10", "-1", "9223372036854775807", "-9223372036854775808", "123456789012345678"} {
		want, _ := strconv.ParseInt(s, 10, 64)
		if got, ok := snapshot.CanonicalInt([]byte(s)); !ok || got != want {
			t.Errorf("%s: got %d, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "-", "-0", "00", "007", "-07", "+1", "1.0", "1_0", "0x10", " 1", "9223372036854775808", "-9223372036854775809", "99999999999999999999", "18446744073709551616"} {
		if got, ok := snapshot.CanonicalInt([]byte(s)); ok {
			t.Errorf("%q: got %d", s, got)
		}
	}
}

// Whatever scanInt takes it reads as strconv does, and it takes every canonical number of 1 to 18 digits.
func TestScanInt(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200000 {
		digits := 1 + rng.IntN(20)
		var text []byte
		for range digits {
			text = append(text, '0'+byte(rng.IntN(10)))
		}
		if rng.IntN(8) == 0 {
			text[rng.IntN(digits)] = byte(rng.IntN(256))
		}
		end := 0
		for end < len(text) && text[end]-'0' <= 9 {
			end++
		}
		want, canonical := snapshot.CanonicalInt(text[:end])
		padded := append(text, ",\xff123456789"...)
		got, next, ok := scanInt(padded, 0)
		if wantOK := canonical && end <= 18; ok != wantOK || ok && (got != want || next != end) {
			t.Fatalf("seed %d: %q: got %d, %d, %v; want %d, %d, %v", seed, text, got, next, ok, want, end, wantOK)
		}
	}
}

var plainNumber = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

func TestParseFloat32(t *testing.T) {
	check := func(s string) {
		t.Helper()
		got, fault := parseFloat32([]byte(s))
		want, err := strconv.ParseFloat(s, 32)
		ok := plainNumber.MatchString(s) && err == nil
		if (fault == numberOK) != ok || ok && got != float32(want) {
			t.Fatalf("%q: got %v, fault %d; want %v, %v", s, got, fault, want, ok)
		}
		if ok && got == 0 && math.Signbit(float64(got)) {
			t.Fatalf("%q gives -0", s)
		}
	}
	for _, s := range []string{"", "0", "-0", "-0.0", "1", "+1", ".5", "5.", ".", "-", "e5", "1e", "1e+", "1e5", "1E-5", "0x1p-2", "1_0", "inf", "nan", "-Inf", "1e999", "1e-999", "3.4028235e38", "3.4028236e38",
		"16777216", "16777217", "0.1", "1.000000059604645", "123456789012345678901234567890", "0.00000000000000000000000001", "1 ", "1,5", "१"} {
		check(s)
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200000 {
		v := math.Float32frombits(rng.Uint32())
		s := strconv.FormatFloat(float64(v), "efg"[rng.IntN(3)], rng.IntN(12)-1, 32)
		if rng.IntN(4) == 0 {
			s = strconv.FormatFloat(rng.Float64()*100, 'f', rng.IntN(12), 64)
		}
		check(s)
	}
	for s, want := range map[string]numberFault{"": numberEmpty, "0,5": numberComma, "1,250,0": numberSyntax, "heavy": numberSyntax, "NaN": numberNaN, "-inf": numberNaN, "1e99": numberRange, "0x10": numberSyntax} {
		if _, got := parseFloat32([]byte(s)); got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}
