package evidence

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// abbreviations are hours east of Greenwich of the zones that messages shorten. Some letters stand for
// two zones; these are the ones where the providers and most of their users are.
var abbreviations = map[string]float64{
	"UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "IST": 5.5, "SGT": 8, "AWST": 8,
	"JST": 9, "KST": 9, "ACST": 9.5, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13,
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10, "BRT": -3,
}

// regions are zones that are shortened without saying whether it is summer.
var regions = map[string]string{"ET": "America/New_York", "CT": "America/Chicago", "MT": "America/Denver", "PT": "America/Los_Angeles"}

var offset = regexp.MustCompile(`(?i)^(?:utc|gmt)\s?([+-])(\d{1,2}):?(\d\d)?$`)

// zoneOf returns the zone of a name (Europe/Paris), of letters in capitals (PST, PT), or of a distance
// (UTC+2, GMT-05:30); nil when nobody knows it.
func zoneOf(name string) *time.Location {
	if hours, ok := abbreviations[strings.ToUpper(name)]; ok && (name == strings.ToUpper(name) || hours == 0) {
		return time.FixedZone(name, int(hours*3600))
	}
	if region, ok := regions[name]; ok {
		name = region
	}
	if m := offset.FindStringSubmatch(name); m != nil {
		hours, _ := strconv.Atoi(m[2])
		minutes, _ := strconv.Atoi(m[3])
		seconds := (hours*60 + minutes) * 60
		if m[1] == "-" {
			seconds = -seconds
		}
		return time.FixedZone(name, seconds)
	}
	if !strings.Contains(name, "/") {
		return nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return loc
}
