//! Figures of the device. Simulated.

use std::sync::Arc;

use afflux_simulator::{ObjectContents, StoreOptions};

use crate::fixture::{KIB, MIB, MILLISECOND, Machine, MachineOptions, SECOND};

#[test]
fn explore() {
    for r in [30, 100, 150] {
        let store = StoreOptions { round_trip_ns: r * MILLISECOND, bytes_per_second: 500_000_000, ..StoreOptions::default() };
        let machine = Machine::new(&ObjectContents::default(), MachineOptions { memory: 512 * MIB, store, ..Default::default() });
        let here = Arc::clone(&machine.here);
        machine.run(async {
            let file = here.open(1, 0);
            let began = here.now_ns();
            let data = vec![7; MIB];
            let mut last = (began, 0);
            for at in 0..1024_u64 {
                here.engine.write(&file, at * MIB as u64, &data).await.unwrap();
                if here.now_ns() - last.0 > SECOND / 2 {
                    println!(
                        "R {r}: {} ms {} MB/s {:?} dirty {} {:?}",
                        (here.now_ns() - began) / MILLISECOND,
                        (at - last.1) * 1_000_000_000 * (1<<20) / 1_000_000 / (here.now_ns() - last.0),
                        here.store.figures(),
                        here.status().dirty_bytes >> 20,
                        here.status().figures.iter().map(|f| (f.info.name, f.value)).collect::<Vec<_>>()
                    );
                    last = (here.now_ns(), at);
                }
            }
            let at = here.now_ns();
            here.sync(&file).await;
            println!("R {r}: all {} ms, sync {} ms, {:?}", (here.now_ns() - began) / MILLISECOND, (here.now_ns() - at) / MILLISECOND, here.store.figures());
        });
    }
}
