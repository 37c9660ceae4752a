// Command trainer-gnn trains graph neural networks on batch sets. It reads batch files
// and only computes: what makes topology is in precompute.
package main

import "os"

func main() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
