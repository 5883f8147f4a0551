package proc

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

// The two benchmarks run the same silent command; the difference is what supervision costs.

func BenchmarkRunTrue(b *testing.B) {
	s := &Spec{Argv: []string{"/bin/true"}, Dir: "/", Env: Environ(nil, nil)}
	for b.Loop() {
		r, err := Run(context.Background(), s)
		if err != nil || r.Exit != 0 {
			b.Fatal(err, r)
		}
		r.Close()
	}
}

func BenchmarkStartProcessTrue(b *testing.B) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		b.Fatal(err)
	}
	attr := &os.ProcAttr{Dir: "/", Env: Environ(nil, nil), Files: []*os.File{null, null, null}}
	for b.Loop() {
		p, err := os.StartProcess("/bin/true", []string{"/bin/true"}, attr)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExecCommandTrue(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
