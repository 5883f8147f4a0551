package dag

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration that reads and prints as text such as 1m30s.
type Duration time.Duration

// MarshalText prints d as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads. Less than a nanosecond is no 0, which stands for no limit.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err == nil && v == 0 && bytes.ContainsAny(b, "123456789") {
		err = fmt.Errorf("%s is less than a nanosecond", b)
	}
	*d = Duration(v)
	return err
}

// D returns d as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// USD is an amount of money in millionths of a US dollar. Sums are exact.
// In JSON it is a plain number of dollars.
type USD int64

// Dollars rounds a number of dollars to the nearest millionth. NaN and infinities are an error.
func Dollars(v float64) (USD, error) {
	if math.IsNaN(v) || math.Abs(v) > 1e12 {
		return 0, fmt.Errorf("%v is not an amount of money", v)
	}
	return USD(math.Round(v * 1e6)), nil
}

// Float returns the amount in dollars.
func (u USD) Float() float64 { return float64(u) / 1e6 }

// String rounds the amount for people: to cents from a dollar upwards, to at most four decimals below, so
// that what a cheap call costs can be told from nothing: 12.34, 0.125, 0.0042. JSON is exact.
func (u USD) String() string {
	sign := ""
	if u < 0 {
		sign, u = "-", -u
	}
	if u >= 999_950 {
		return fmt.Sprintf("%s%.2f", sign, u.Float())
	}
	if u > 0 {
		u = max(u, 100)
	}
	s := fmt.Sprintf("%.4f", u.Float())
	s = strings.TrimSuffix(strings.TrimSuffix(s, "0"), "0")
	return sign + s
}

// MarshalJSON prints the shortest decimal number, which is also its canonical form.
func (u USD) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, u.Float(), 'f', -1, 64), nil
}

// UnmarshalJSON reads a number of dollars.
func (u *USD) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("%q is not an amount of money", b)
	}
	*u, err = Dollars(v)
	return err
}
