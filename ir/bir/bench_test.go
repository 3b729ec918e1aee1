package bir_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/rosmar-compiler/rosmar/ir"
	"github.com/rosmar-compiler/rosmar/ir/bir"
)

// program is a D2 text of at least size bytes: loads, matmuls with all keys, activations and saves in one block.
func program(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"arch":"gen3","functions":[{"allocations":[`)
	const tensors = 64
	for i := range tensors {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"Skind":"memory_location_set","addr_space":"Local","dtype":"bfloat16","kind":"ExternalInput","memorylocations":[{"Skind":"memory_location","addr":0,"allocated":false,"bank":0,"base":0,"dims":[128,1024],"name":"in%d","pinned":false,"tensor_id":0,"type":"DRAM"}],"name":"in%d_set","partition_dim":0,"tensorId2MemLocSize":1,"tensor_class":"Tensor","tensor_shape":[128,512]},`, i, i)
		fmt.Fprintf(&b, `{"Skind":"memory_location_set","addr_space":"Local","dtype":"bfloat16","kind":"Internal","memorylocations":[{"Skind":"memory_location","addr":%d,"allocated":true,"bank":0,"base":0,"dims":[128,1024],"name":"sb%d","pinned":false,"tensor_id":0,"type":"SB"}],"name":"sb%d_set","partition_dim":0,"tensorId2MemLocSize":1,"tensor_class":"NeuronSBTensor","tensor_shape":[128,512]},`, 16384+i*1024, i, i)
		fmt.Fprintf(&b, `{"Skind":"memory_location_set","addr_space":"Local","dtype":"float32","kind":"Internal","memorylocations":[{"Skind":"memory_location","addr":0,"allocated":true,"bank":%d,"base":0,"dims":[128,2048],"name":"ps%d","pinned":false,"tensor_id":0,"type":"PSUM"}],"name":"ps%d_set","partition_dim":0,"tensorId2MemLocSize":1,"tensor_class":"NeuronPSUMTensor","tensor_shape":[128,512]}`, i%8, i, i)
	}
	b.WriteString(`],"attributes":[],"blocks":[{"instructions":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		k := i % tensors
		fmt.Fprintf(&b, `{"dge_type":"None","engine":"SP","engine_id":0,"ins":[{"ap":[[512,128],[1,512]],"dtype":"bfloat16","kind":"physical_ap","memref":"in%d","memsetref":"in%d_set","offset":0}],"name":"I-%d","opcode":"Load","optin_passes":[],"origin":"Internal","outs":[{"ap":[[512,128],[1,512]],"dtype":"bfloat16","kind":"physical_ap","memref":"sb%d","memsetref":"sb%d_set","offset":0}],"scheduled_end":0,"scheduled_start":0},`, k, k, 3*i, k, k)
		fmt.Fprintf(&b, `{"accumulation_flag":3,"dependencies":[["I-%d","Flow"]],"engine":"PE","engine_id":0,"ifmap_quant_offset":0,"ins":[{"ap":[[512,128],[1,512]],"dtype":"bfloat16","kind":"physical_ap","memref":"sb%d","memsetref":"sb%d_set","offset":0},{"ap":[[512,128],[1,128]],"dtype":"bfloat16","kind":"physical_ap","memref":"sb%d","memsetref":"sb%d_set","offset":128}],"is_fmap_onezero":false,"is_transpose":false,"is_weight_onezero":false,"name":"I-%d","opcode":"Matmult","optin_passes":[],"origin":"Internal","outs":[{"ap":[[512,128],[1,512]],"dtype":"float32","kind":"physical_ap","memref":"ps%d","memsetref":"ps%d_set","offset":0}],"perf_mode":"None","psum_zero_region":0,"replication_num_rows":0,"replication_resolution":0,"replication_shift_amnt":0,"scheduled_end":0,"scheduled_start":0,"tile_position":[-1,-1],"tile_size":[-1,-1],"weights_quant_offset":0},`, 3*i, k, k, k, k, 3*i+1, k, k)
		fmt.Fprintf(&b, `{"acc":"Idle","alpha":0.0,"dependencies":[["I-%d","Flow"],["I-%d","Anti"]],"engine":"Activation","engine_id":0,"func":"Relu","ins":[{"ap":[[512,128],[1,512]],"dtype":"float32","kind":"physical_ap","memref":"ps%d","memsetref":"ps%d_set","offset":0},{"dtype":"float32","kind":"imm_value","value":0.0},{"dtype":"float32","kind":"imm_value","value":1.0},{"dtype":"float32","kind":"imm_value","value":0.0}],"name":"I-%d","op0":"bypass","op1":"bypass","opcode":"Activation","optin_passes":[],"origin":"Internal","outs":[{"ap":[[512,128],[1,512]],"dtype":"bfloat16","kind":"physical_ap","memref":"sb%d","memsetref":"sb%d_set","offset":0}],"reduce_op":"bypass","scale":1.0,"scheduled_end":0,"scheduled_start":0}`, 3*i+1, 3*i, k, k, 3*i+2, k, k)
	}
	b.WriteString(`],"name":"Block1"}],"name":"sg0000"}],"version":2}`)
	return b.Bytes()
}

func BenchmarkRead(b *testing.B) {
	data := program(10 << 20)
	var r bir.Reader
	var m ir.Module
	if err := r.Read(data, &m); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Read(data, &m); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(m.Insts.Len())*float64(b.N)/b.Elapsed().Seconds(), "inst/s")
}

// BenchmarkReadCold reads into a module and a reader that have no memory yet.
func BenchmarkReadCold(b *testing.B) {
	data := program(10 << 20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := bir.Read(data, new(ir.Module)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	m := read(b, program(10<<20))
	var w bir.Writer
	size := len(write(b, m))
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(io.Discard, m); err != nil {
			b.Fatal(err)
		}
	}
}
