package report

// A Warning is a line that an attempt left.
type Warning struct {
	Node string `json:"node"`
	Text string `json:"text"`
}
