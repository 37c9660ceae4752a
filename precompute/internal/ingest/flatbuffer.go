package ingest

import (
	"encoding/binary"
	"errors"
)

// flatTable is a table of a flatbuffer: the Arrow library allocates by the counts of its vectors, so they are checked
// first. Offsets out of range panic; guard catches that.
type flatTable struct {
	b  []byte
	at int
}

var errFlat = errors.New("damaged Arrow metadata")

func flatRoot(b []byte) flatTable { return flatTable{b, int(binary.LittleEndian.Uint32(b))} }

func (t flatTable) u32(at int) int { return int(binary.LittleEndian.Uint32(t.b[at:])) }

// field returns the place of a field, 0 if it has its default.
func (t flatTable) field(slot int) int {
	vtable := t.at - int(int32(t.u32(t.at)))
	if size := int(binary.LittleEndian.Uint16(t.b[vtable:])); 4+2*slot+2 > size {
		return 0
	}
	off := int(binary.LittleEndian.Uint16(t.b[vtable+4+2*slot:]))
	if off == 0 {
		return 0
	}
	return t.at + off
}

// table returns a field that is a table.
func (t flatTable) table(slot int) (flatTable, bool) {
	at := t.field(slot)
	if at == 0 {
		return t, false
	}
	return flatTable{t.b, at + t.u32(at)}, true
}

// vector returns the place and length of a vector of items of that many bytes.
func (t flatTable) vector(slot, itemBytes int) (at, count int, err error) {
	if at = t.field(slot); at == 0 {
		return 0, 0, nil
	}
	at += t.u32(at)
	count = t.u32(at)
	if at += 4; count > (len(t.b)-at)/itemBytes {
		return 0, 0, errFlat
	}
	return at, count, nil
}

// Slots of the Arrow flatbuffers (Schema.fbs, Message.fbs, File.fbs of the Arrow format) that hold vectors or tables.
const (
	footerSchema, footerDictionaries, footerBatches = 1, 2, 3
	messageType, messageHeader                      = 1, 2
	headerSchema                                    = 1 // value of messageType
	schemaFields, schemaMetadata                    = 1, 2
	fieldTypeType, fieldType                        = 2, 3
	fieldChildren, fieldMetadata                    = 5, 6
	typeUnion, unionTypeIDs                         = 14, 1
	maxArrowFields, maxArrowDepth                   = 1 << 16, 32
)

// checkSchema checks the vectors of a Schema.
func (t flatTable) checkSchema() error {
	if _, _, err := t.vector(schemaMetadata, 4); err != nil {
		return err
	}
	left := maxArrowFields
	return t.checkFields(schemaFields, 0, &left)
}

// checkFields checks the vectors of the Field tables in a vector; left is how many more there may be.
func (t flatTable) checkFields(slot, depth int, left *int) error {
	at, count, err := t.vector(slot, 4)
	if err != nil {
		return err
	}
	if *left -= count; *left < 0 || depth > maxArrowDepth {
		return errFlat
	}
	for i := range count {
		f := flatTable{t.b, at + 4*i + t.u32(at+4*i)}
		if _, _, err := f.vector(fieldMetadata, 4); err != nil {
			return err
		}
		if kind := f.field(fieldTypeType); kind != 0 && f.b[kind] == typeUnion {
			if u, ok := f.table(fieldType); ok {
				if _, _, err := u.vector(unionTypeIDs, 4); err != nil {
					return err
				}
			}
		}
		if err := f.checkFields(fieldChildren, depth+1, left); err != nil {
			return err
		}
	}
	return nil
}
