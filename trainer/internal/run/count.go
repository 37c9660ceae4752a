package run

import "fmt"

// Count is a number of things in words: 1 epoch, 2 epochs.
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// are is Count with its verb: 1 epoch is, 2 epochs are.
func are(n int, one string) string {
	if n == 1 {
		return Count(n, one) + " is"
	}
	return Count(n, one) + " are"
}
