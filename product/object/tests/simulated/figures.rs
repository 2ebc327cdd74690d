//! Figures of the device. Simulated.

use std::sync::Arc;

use afflux_engine::policy::FigureValue;
use afflux_simulator::{ObjectContents, StoreOptions};

use crate::fixture::{KIB, MIB, MILLISECOND, Inside, Machine, MachineOptions, SECOND};

fn show(here: &Inside) -> String {
    let status = here.status();
    let of = |name: &str| status.figures.iter().find(|f| f.info.name == name).map_or(0, |f| match f.value { FigureValue::Number(n) => n, _ => 0 });
    format!("mib_ns {} run_ns {} owed_ms {} {} in_flight {} p {} unl_ms {}", of("mib_ns"), of("run_ns"), of("owed_ns")/1000000, of("in_flight_max_ns")/1000000, status.in_flight, of("parallel_requests"), of("unloaded_latency_ns")/1000000)
}

#[test]
fn explore() {
    for (r, rate) in [(30, 500), (100, 1000), (150, 500), (100, 100), (100, 10)] {
        let store = StoreOptions { round_trip_ns: r * MILLISECOND, spread_per_mille: 200, bytes_per_second: rate * 1_000_000, ..StoreOptions::default() };
        let machine = Machine::new(&ObjectContents::default(), MachineOptions { memory: 1024 * MIB, store, ..Default::default() });
        let here = Arc::clone(&machine.here);
        machine.run(async {
            let file = here.open(1, 0);
            let began = here.now_ns();
            let data = vec![7; MIB];
            let mut last = (began, 0);
            for at in 0..rate * 4 {
                here.engine.write(&file, at * MIB as u64, &data).await.unwrap();
                if here.now_ns() - last.0 > SECOND / 2 {
                    println!(
                        "R {r}: {} ms {} MB/s puts {} most {} dirty {} {}",
                        (here.now_ns() - began) / MILLISECOND,
                        (at - last.1) * 1_000_000_000 * (1<<20) / 1_000_000 / (here.now_ns() - last.0),
                        here.store.figures().puts, here.store.figures().requests_max,
                        here.status().dirty_bytes >> 20, show(&here)
                    );
                    last = (here.now_ns(), at);
                }
            }
            let at = here.now_ns();
            here.sync(&file).await;
            println!("R {r} {rate}: all {} ms, sync {} ms, {:?}", (here.now_ns() - began) / MILLISECOND, (here.now_ns() - at) / MILLISECOND, here.store.figures());
        });
    }
}
