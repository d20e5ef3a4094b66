use cuzk_witness::*; use cuzk_witness::por::*; use cuzk_witness::post::*; use cuzk_witness::poseidon::*;
use blstrs::Scalar; use ff::Field; use std::time::Instant;
use rand::SeedableRng;
use bellperson::{Circuit,ConstraintSystem};
use bellperson::util_cs::witness_cs::WitnessCS;
use filecoin_hashers::poseidon::PoseidonHasher;
use storage_proofs_core::merkle::LCTree;
use storage_proofs_post::fallback;
use typenum::{U0,U8};
fn main(){
  let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
  let t=Instant::now();
  Hash::Nodes8.function(); println!("constants 8 {:?}", t.elapsed());
  let t=Instant::now();
  Hash::Nodes2.function(); println!("constants 2 {:?}", t.elapsed());
  let t=Instant::now();
  Hash::Column11.function(); println!("constants 11 {:?}", t.elapsed());
  for hash in [Hash::Nodes2, Hash::Nodes8, Hash::Column11] {
    let f=hash.function();
    let pre: Vec<Scalar> = (0..64*f.arity()).map(|_|Scalar::random(&mut rng)).collect();
    for isa in Isa::all() {
      let mut best=f64::MAX;
      for _ in 0..30 { let t=Instant::now(); let h=f.hash(isa,&pre); std::hint::black_box(&h); best=best.min(t.elapsed().as_secs_f64()); }
      println!("{hash:?} {isa}: {:.2} us a hash, {} vars", best/64.*1e6, f.variables());
    }
  }
  for (sectors, challenges) in [(66,1),(2,10)] {
  let shape=PostShape{tree:TreeShape::new(8,2,0,0).unwrap(),sectors,challenges};
  let mut r=||Scalar::random(&mut rng);
  let secs: Vec<Sector> = (0..sectors).map(|_| Sector{comm_r:r(),comm_c:r(),comm_r_last:r(),paths:(0..challenges).map(|k|MerklePath{leaf:r(),index:(k as u64*7)%64,siblings:(0..2).map(|_|(0..7).map(|_|r()).collect()).collect()}).collect()}).collect();
  let circ=||{ fallback::FallbackPoStCircuit::<LCTree<PoseidonHasher,U8,U0,U0>>{prover_id:None, sectors: secs.iter().map(|s| fallback::Sector{comm_r:Some(s.comm_r),comm_c:Some(s.comm_c),comm_r_last:Some(s.comm_r_last),leafs:s.paths.iter().map(|p|Some(p.leaf)).collect(),paths:s.paths.iter().map(|p|{let mut i=p.index as usize; p.siblings.iter().map(|l|{let x=i%8; i/=8; (l.iter().copied().map(Some).collect::<Vec<_>>(),Some(x))}).collect::<Vec<_>>().into()}).collect(),id:None}).collect()} };
  for threads in [1,2] {
    let pool=rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(||{
      for isa in Isa::all() {
      let mut a=vec![];let mut b=vec![];
      for _ in 0..10 {
        let c=circ();
        let t=Instant::now(); let mut cs=WitnessCS::<Scalar>::new(); c.synthesize(&mut cs).unwrap(); a.push(t.elapsed().as_secs_f64());
        std::hint::black_box(&cs);
        for _ in 0..5 {let t=Instant::now(); let w=write(isa,shape,&secs).unwrap(); b.push(t.elapsed().as_secs_f64()); std::hint::black_box(&w);}
      }
      a.sort_by(f64::total_cmp);b.sort_by(f64::total_cmp);
      println!("{sectors}x{challenges} threads {threads} {isa}: theirs {:.2} ms ours {:.3} ms ratio {:.1} (medians), min {:.2} / {:.3}", a[a.len()/2]*1e3,b[b.len()/2]*1e3,a[a.len()/2]/b[b.len()/2],a[0]*1e3,b[0]*1e3);
      }
    });
  }}
}
