package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"dagrun.dev/internal/printable"
)

// A StartError says that the child could not be started: not found, not executable, a bad
// interpreter, arguments too long. Path names what is missing; a relative one is looked for from Dir.
type StartError struct {
	Path string
	Dir  string
	Err  error
}

// Error names what could not be started, from which folder, and why.
func (e *StartError) Error() string {
	from := ""
	if e.Dir != "" && !filepath.IsAbs(e.Path) {
		from = " from " + e.Dir
	}
	return "cannot start " + e.Path + from + ": " + e.Err.Error()
}

// Missing reports whether the program was not there, or was just being written: it may be there in
// a minute, where an update is replacing it.
func (e *StartError) Missing() bool {
	return errors.Is(e.Err, errNotFound) || errors.Is(e.Err, syscall.ENOENT) || errors.Is(e.Err, syscall.ETXTBSY)
}

// Short reports whether the machine had no room for another process or file just then.
func (e *StartError) Short() bool {
	short := []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}
	return slices.ContainsFunc(short, func(err error) bool { return errors.Is(e.Err, err) })
}

// TooLong reports whether what the program was given is too long, not the program at fault.
func (e *StartError) TooLong() bool { return errors.Is(e.Err, errTooLong) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

var (
	errNotFound  = errors.New("not found on PATH")
	errNoCommand = errors.New("no command")
	errTooLong   = errors.New("arguments and environment are too long for the operating system")
)

// start starts the child and registers it.
func start(s *Spec, out, errs *os.File) (*Tree, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return nil, &StartError{Path: `""`, Err: errNoCommand}
	}
	path, err := find(s.Argv[0], s)
	if err != nil {
		return nil, &StartError{Path: s.Argv[0], Err: err}
	}
	argv := s.Argv
	if s.Limits != (Limits{}) {
		path, argv = s.Limits.Wrap(path, argv)
	}
	stdin := s.Stdin
	if stdin == nil {
		if stdin, err = null(); err != nil {
			return nil, err
		}
	}
	tree, err := spawn(path, argv, s, []uintptr{stdin.Fd(), out.Fd(), errs.Fd()})
	if err != nil {
		return nil, explain(path, s.Dir, err)
	}
	return tree, nil
}

// busyPauses are the waits before a program that is being written (by an update of itself, or
// by a fork that has not closed its descriptors yet) is tried again.
var busyPauses = []time.Duration{
	5 * time.Millisecond, 20 * time.Millisecond, 80 * time.Millisecond, 320 * time.Millisecond, time.Second,
}

func spawn(path string, argv []string, s *Spec, files []uintptr) (*Tree, error) {
	for i := 0; ; i++ {
		tree, err := fork(path, argv, &syscall.ProcAttr{Dir: s.Dir, Files: files, Env: s.Env})
		if !errors.Is(err, syscall.ETXTBSY) || i == len(busyPauses) {
			return tree, err
		}
		time.Sleep(busyPauses[i])
	}
}

var null = sync.OnceValues(func() (*os.File, error) { return os.Open(os.DevNull) })

// Input returns a file in a folder with what a child is to read. The child can close it early or read it late, and no
// goroutine has to write.
func Input(folder string, from io.Reader) (*os.File, error) {
	f, err := os.Create(filepath.Join(folder, "stdin"))
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(f, from); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("stdin: %w", err)
	}
	return f, nil
}

// find looks a program up as a shell in the child's folder with the child's PATH would.
func find(name string, s *Spec) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil // execve resolves it after the change of folder, and says what is wrong
	}
	for _, dir := range filepath.SplitList(valueOf(s.Env, "PATH")) {
		if dir == "" {
			dir = "."
		}
		path := filepath.Join(dir, name)
		seen := path
		if !filepath.IsAbs(path) {
			path = "./" + path
			seen = filepath.Join(s.Dir, path)
		}
		if info, err := os.Stat(seen); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", errNotFound
}

func valueOf(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// Wrap puts a shell in front that sets the limits and then becomes the program: the
// limits hold before its first instruction, and its process number stays.
func (l Limits) Wrap(path string, argv []string) (string, []string) {
	var script strings.Builder
	set := func(flag string, v uint64) {
		if v > 0 {
			script.WriteString("ulimit -" + flag + " " + strconv.FormatUint(v, 10) + " || exit 126\n")
		}
	}
	set("d", l.MemoryMB<<10) // in KiB
	set("t", l.CPUSeconds)
	set("f", l.FileMB<<11) // in blocks of 512 bytes, POSIX
	set("n", l.OpenFiles)
	script.WriteString(`exec "$@"`)
	return "/bin/sh", append([]string{"sh", "-c", script.String(), "sh", path}, argv[1:]...)
}

// explain turns an error of execve into a StartError that names what is really missing.
func explain(path, dir string, err error) error {
	at := path
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		if _, e := os.Stat(dir); e != nil {
			return &StartError{Path: path, Err: errors.New(e.Error())} // waiting brings no folder
		}
		if in := interpreter(at); in != "" {
			err = fmt.Errorf("its interpreter %s does not exist", printable.Text(in))
			if bare, crlf := strings.CutSuffix(in, "\r"); crlf {
				err = fmt.Errorf("its lines end in CR LF, and so %s\\r is looked for: save it with LF alone", printable.Text(bare))
			}
		}
	case errors.Is(err, syscall.E2BIG):
		err = errTooLong
	case errors.Is(err, syscall.ENOEXEC):
		err = errors.New("not a program: no #! line, or built for another machine")
	case errors.Is(err, syscall.EINVAL):
		err = errors.New("an argument or variable holds a NUL byte")
	}
	return &StartError{Path: path, Dir: dir, Err: err}
}

// interpreter returns the program named in the #! line of a file that exists, or "".
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 256).ReadString('\n')
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return ""
	}
	if fields := strings.FieldsFunc(rest, func(c rune) bool { return strings.ContainsRune(" \t\n", c) }); len(fields) > 0 {
		return fields[0]
	}
	return ""
}
