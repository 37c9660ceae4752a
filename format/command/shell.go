package command

import "strings"

// ShellLine writes arguments so that a shell reads them back.
func ShellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, s := range args {
		quoted[i] = s
		if s == "" || strings.ContainsFunc(s, needsQuotes) {
			quoted[i] = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func needsQuotes(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=,:+@%", r))
}
