// Package report says what a function holds in a memory, in text for people: the snapshots of memory analysis.
//
//	Write       the views and memories that are asked for           report.go
//	spilling    what lives elsewhere, and what moving it costs      spilling.go
//	live-range  who is live from where to where, and at what place  ranges.go
//	pressure    how much is live, at the worst point and over time  pressure.go
//
// It works before placement and after it, on whatever has no address yet as well, and changes nothing. Points are those of package
// ssa. Output is bounded: lists keep the rows that weigh most and say how many they left out, and a profile has a row for a
// stretch of points.
package report
