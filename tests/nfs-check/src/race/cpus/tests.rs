use rustix::thread::sched_getaffinity;

use super::*;

#[test]
fn a_loop_of_the_host_has_the_servers_cpu() {
    let cpus = Cpus { servers: 0, client: 1, disk: None };
    let cpus_of = || {
        let mine = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|cpu| mine.is_set(*cpu)).collect::<Vec<_>>()
    };
    let before = cpus_of();
    assert_eq!(cpus.on_servers_cpu(|| Ok(cpus_of())).unwrap(), [0]);
    assert_eq!(cpus_of(), before, "this thread has its CPUs still");
}
