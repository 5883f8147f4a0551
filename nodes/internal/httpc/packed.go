package httpc

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// unpacked returns the body of an answer as it was before it was compressed. Nobody asked for that, but
// some gateways do it, and the answer may have been paid for. A request that names an encoding itself gets
// what was sent.
func unpacked(req *Request, resp *http.Response) io.ReadCloser {
	kind := strings.ToLower(resp.Header.Get("Content-Encoding"))
	if kind != "gzip" && kind != "x-gzip" || req.Header.Get("Accept-Encoding") != "" {
		return resp.Body
	}
	return &packed{ReadCloser: resp.Body}
}

// A packed body is read as what it holds. It is opened by the first read: the head waits for nothing.
type packed struct {
	io.ReadCloser
	gz *gzip.Reader
}

func (p *packed) Read(b []byte) (n int, err error) {
	if p.gz == nil {
		if p.gz, err = gzip.NewReader(p.ReadCloser); err != nil {
			p.gz = nil
			return 0, damaged(err)
		}
	}
	n, err = p.gz.Read(b)
	return n, damaged(err)
}

// errDamaged is a compressed body that is none.
var errDamaged = errors.New("what was compressed is damaged")

func damaged(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return fmt.Errorf("%w: %v", errDamaged, err)
	}
	return err
}
