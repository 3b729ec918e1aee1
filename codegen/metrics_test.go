package codegen

import (
	"bytes"
	"strings"
	"testing"
)

// All metrics are there whatever is printed, under the names of the reference's list, with the figures of a program that one can add up.
func TestMetrics(t *testing.T) {
	_, res, err := tiles(t, sharedDRAM, NewOptions())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Metric{}
	for _, m := range res.Metrics {
		if _, twice := got[m.Name]; twice {
			t.Errorf("%s twice", m.Name)
		}
		got[m.Name] = m
	}
	// Three loads and four saves of 512 bytes; one of each is of the shared tensor.
	for name, want := range map[string]float64{
		"renumbered_locations_psum": 0, "renumbered_locations_dram": 3, "renumbered_locations_sb": 4,
		"splittable_sb_nodes": 0, "split_sb_nodes": 0, "shrunk_psum_nodes": 0, "shrunk_sb_nodes": 0, "shrink_savings": 0,
		"dram_spill_bytes": 0, "dram_spill_bytes_aligned": 0,
		"dram_local_high_water": 4096, "dram_local_total": 4096, "dram_shared_high_water": 8192, "dram_shared_total": 4096,
		"collective_buffer_bytes":        0,
		"dma_accesses_before_allocation": 7, "dma_accesses_after_allocation": 7,
		"dma_size_local_in_load_total": 1024, "dma_size_shared_in_load_total": 512, "dma_size_local_out_load_total": 1536, "dma_size_shared_out_load_total": 0,
		"dma_size_local_in_save_total": 2048, "dma_size_shared_in_save_total": 0, "dma_size_local_out_save_total": 1536, "dma_size_shared_out_save_total": 512,
		"dma_size_local_in_load_average": 512, "dma_size_shared_out_save_average": 512,
		"dma_size_local_in_copy_total": 0, "dma_size_shared_out_copy_average": 0,
		"hbm_allocated": 8192 + 512, "hbm_runtime": 1024, "hbm_descriptors": 7 * 8 * slotBytes,
		"instructions_SP": 3, "instructions_Activation": 4,
	} {
		if m, ok := got[name]; !ok || m.Value != want {
			t.Errorf("%s: %v, want %v", name, m.Value, want)
		}
	}
	if m := got["dma_size_local_out_save_average"]; m.Aggregation != MetricAverage || m.Count != 3 || m.Value != 512 {
		t.Errorf("%+v", m)
	}
	if got["hbm_code"].Value < 7*64 || got["estimated_latency_ns"].Value <= 0 || len(got) < 24+15 {
		t.Errorf("%d metrics, code %v, latency %v", len(got), got["hbm_code"].Value, got["estimated_latency_ns"].Value)
	}
	var w Worker
	var table, line bytes.Buffer
	w.opt = new(Options)
	p := w.Profile(res)
	p.WriteTable(&table)
	if err := p.WriteJSON(&line); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "512.0  dma_size_local_in_load_average") || strings.Contains(table.String(), "_copy_") ||
		!strings.Contains(line.String(), `{"name":"dma_size_local_in_load_average","aggregation":"average","value":512,"count":2}`) {
		t.Errorf("%s\n%s", table.String(), line.String())
	}
}
