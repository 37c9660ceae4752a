package ingest

import (
	"strings"
	"testing"

	"github.com/prelift/prelift/snapshot"
)

// Columns of several tables are one where their names are, in any case; a doubled one is an error in each.
func TestJoinedColumns(t *testing.T) {
	edges := writeFile(t, "e.csv", "src,dst\na,b\nb,c\nc,d\n")
	tables, _ := mustRead(t, Options{Edges: []string{edges}, LabelCol: "kind", NodeFiles: []string{
		writeFile(t, "1.csv", "id,Split,kind,f0,a,A\na,train,x,1,p,q\nb,test,y,2,p,q\n"),
		writeFile(t, "2.csv", "ID,F0,KIND,split,A\nc,3,z,valid,q\nd,4,x,train,q\n")}})
	wantParts(t, tables, map[string]snapshot.Part{"a": snapshot.PartTrain, "b": snapshot.PartTest, "c": snapshot.PartValid, "d": snapshot.PartTrain})
	wantClasses(t, tables, map[string]string{"a": "x", "b": "y", "c": "z", "d": "x"})
	if got := tables.Features.Data; len(got) != 4 || got[2] != 3 {
		t.Errorf("features %v", got)
	}
	one := writeFile(t, "1.csv", "id\na\nb\n")
	for _, head := range []string{"id,label,label", "id,f0,f0", "id,kind,kind", "id,Split,split", "id,f0,F0", "id,Label,label"} {
		fields := strings.Split(head, ",")
		text := head + "\nc,1,1\nd,1,1\n"
		wantError(t, Options{Edges: []string{edges}, NodeFiles: []string{one, writeFile(t, "2.csv", text)}}, "2.csv", 1, `column "`+fields[2]+`" appears twice`)
	}
	wantError(t, Options{Edges: []string{edges}, Nodes: writeFile(t, "n.csv", "id,split,Split\na,train,test\n")}, "n.csv", 1, `column "split" appears twice`)
}
