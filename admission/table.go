package admission

// table is an index by key. A map keeps the room that it ever needed; a table that
// held many and holds few gives it back.
type table[K comparable, V any] struct {
	rows map[K]V
	// most is how many it held at most since the map was made.
	most int
}

const (
	// fewRows are moved to another map within one operation.
	fewRows = 100
	// searchedRoom bounds the room in which they are looked for. A larger map is
	// given up only when it is empty.
	searchedRoom = 1 << 20
)

func (t *table[K, V]) get(key K) V { return t.rows[key] }
func (t *table[K, V]) len() int    { return len(t.rows) }

func (t *table[K, V]) set(key K, v V) {
	if t.rows == nil {
		t.rows = map[K]V{}
	}
	t.rows[key] = v
	t.most = max(t.most, len(t.rows))
}

func (t *table[K, V]) drop(key K) {
	delete(t.rows, key)
	switch n := len(t.rows); {
	case t.most <= 8*fewRows:
	case n == 0:
		t.rows, t.most = nil, 0
	case n <= fewRows && t.most <= searchedRoom:
		rows := make(map[K]V, n)
		//unordered: each keeps its key
		for k, v := range t.rows {
			rows[k] = v
		}
		t.rows, t.most = rows, n
	}
}
