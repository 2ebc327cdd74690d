//! Effects of jobs' options on a run: queues, calls past the cache, waits between jobs, failures.

use afflux_engine::Nanos;
use afflux_simulator::DiskOptions;
use afflux_workloads::Workload;
use afflux_workloads::fio::{Alone, parse};
use afflux_workloads::simulation::{Contents, DeviceChoice, Outcome, Simulation};

fn simulation(text: &str) -> Simulation {
    let disk = DiskOptions { latency_ns: 1_000_000, bytes_per_second: 1_000_000_000, ..DiskOptions::default() };
    let mut simulation = Simulation::new(1, DeviceChoice::plain(disk));
    simulation.memory_bytes = 16 << 20;
    simulation.contents = Contents::Exact;
    let jobs = parse("test.fio", text, &mut Alone("there is none")).unwrap_or_else(|wrong| panic!("{wrong}")).jobs;
    simulation.workloads = jobs.into_iter().map(Workload::Job).collect();
    simulation
}

fn outcome(text: &str) -> Outcome {
    simulation(text).run(&mut |_| ()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_queue_of_eight_is_eight_times_as_fast_where_the_disk_has_room() {
    let took = |options: &str| {
        let outcome = outcome(&format!("[x]\nrw=randread\nsize=1m\ndirect=1\nioengine=libaio\n{options}\n"));
        assert_eq!(outcome.devices[0].requests.0, 256);
        outcome.jobs[0].read.elapsed_ns
    };
    let (one, eight) = (took("iodepth=1"), took("iodepth=8"));
    assert!(one > 7 * eight && one < 9 * eight, "{one} and {eight} ns");
    // The queue runs empty each time and is refilled: the depth is the same, but not all the time.
    let batches = took("iodepth=8\niodepth_batch=8\niodepth_low=1");
    assert!(batches >= eight && batches < 2 * eight, "{batches} and {eight} ns");
}

#[test]
fn calls_past_the_cache_are_not_in_it() {
    let twice = |options: &str| {
        let outcome = outcome(&format!("[x]\nrw=read\nsize=1m\nbs=64k\nloops=2\ninvalidate=0\n{options}\n"));
        (outcome.jobs[0].read.bytes, outcome.devices[0].bytes.0)
    };
    assert_eq!(twice("direct=0"), (2 << 20, 1 << 20));
    assert_eq!(twice("direct=1"), (2 << 20, 2 << 20));
}

#[test]
fn cache_and_disk_agree_whoever_writes_past_whom() {
    // Exact contents are compared at each read.
    let text = "[cached]\nrw=write\nfilename=f\nsize=256k\n[past]\nstonewall\nrw=randwrite\nfilename=f\nsize=256k\n\
                direct=1\n[reads]\nstonewall\nrw=read\nfilename=f\nsize=256k\ninvalidate=0\n";
    let outcome = outcome(text);
    assert_eq!(outcome.jobs[2].read.bytes, 256 << 10);
    assert!(outcome.unwritten.is_empty());
    assert_eq!(outcome.devices[0].bytes, (256 << 10, 512 << 10), "what was dirty is written first, then read again");
}

#[test]
fn a_direct_call_that_is_no_whole_block_fails() {
    let outcome = outcome("[x]\nrw=write\nsize=10000\nbs=1000\ndirect=1\n");
    assert_eq!(outcome.jobs[0].errors, [("write: input/output error (errno 22)".to_owned(), 1)]);
}

#[test]
fn a_synchronous_write_is_durable_when_it_returns() {
    let outcome = outcome("[x]\nrw=write\nsize=64k\nsync=1\n");
    assert!(outcome.jobs[0].write.latency.min_ns >= 1_000_000, "{:?}", outcome.jobs[0].write);
    assert_eq!(outcome.at_risk_bytes_max, 4096);
}

#[test]
fn what_was_written_is_read_back() {
    let of = |options: &str| {
        let job = outcome(&format!("[x]\nrw=randwrite\nsize=256k\nverify=crc32c\n{options}\n")).jobs.remove(0);
        (job.read.ops, job.write.ops)
    };
    assert_eq!(of(""), (64, 64));
    assert_eq!(of("do_verify=0"), (0, 64));
    assert_eq!(of("loops=2"), (128, 128));
    assert_eq!(of("do_verify=0\nverify_backlog=16"), (64, 64));
    assert_eq!(of("verify_only=1"), (64, 0));
    assert_eq!(of("direct=1\nioengine=libaio\niodepth=4"), (64, 64));
}

#[test]
fn a_jobs_end_ends_others_where_it_says_so() {
    let text = |ends: &str| {
        format!(
            "[short]\nrw=write\nsize=64k\nthinktime=1ms\n{ends}\n[long]\nrw=write\nsize=1m\ntime_based\nruntime=50\nthinktime=10ms\n"
        )
    };
    assert!(outcome(&text("")).jobs[1].elapsed_ns > 49 * Nanos::SECOND);
    let ended = outcome(&text("exitall")).jobs[1].elapsed_ns;
    assert!(ended < Nanos::SECOND, "{ended} ns");
}

#[test]
fn a_job_waits_for_the_one_it_names() {
    let text = "[a]\nrw=write\nsize=64k\nfilename=f\nthinktime=10ms\n[b]\nwait_for=a\nrw=write\nsize=4k\nfsync=1\n[c]\nrw=write\nsize=4k\n";
    let mut simulation = simulation(text);
    simulation.until_ns = Some(50 * Nanos::MILLISECOND);
    let jobs = simulation.run(&mut |_| ()).expect("runs").jobs;
    assert_eq!([jobs[0].write.ops > 0, jobs[1].write.ops > 0, jobs[2].write.ops > 0], [true, false, true]);
    assert_eq!(outcome(text).jobs[1].write.ops, 1);
}

#[test]
fn a_job_below_its_least_rate_fails() {
    let job = |least: &str| {
        outcome(&format!("[x]\nrw=randread\nsize=40m\ndirect=1\nnumber_ios=4000\nrate_min={least}\n")).jobs.remove(0)
    };
    assert!(job("1m").errors.is_empty());
    let errors = job("40m").errors;
    assert!(errors[0].0.starts_with("read: ") && errors[0].0.contains("less than rate_min=41943040"), "{errors:?}");
}

#[test]
fn what_warms_up_is_not_counted() {
    let job = outcome("[x]\nrw=randread\nsize=40m\ndirect=1\nramp_time=1\nruntime=1\ntime_based\n").jobs.remove(0);
    assert!((900..=1000).contains(&job.read.ops), "{:?}", job.read);
}

#[test]
fn a_device_by_its_name_is_as_large_as_it_is() {
    let mut one = simulation("[x]\nrw=read\nfilename=/dev/sdx\nbs=1m\n");
    one.contents = Contents::Unchecked;
    one.devices[0] = DeviceChoice::plain(DiskOptions {
        capacity_bytes: 8 << 20,
        request_bytes_max: 1 << 20,
        ..DiskOptions::default()
    });
    assert_eq!(one.check().expect("fits")[0].bytes, 8 << 20);
    assert_eq!(one.run(&mut |_| ()).expect("runs").jobs[0].read.bytes, 8 << 20);
    let wrong = simulation("[x]\nrw=read\nfilename=/tmp/none\n[y]\nrw=read\nfilename=/tmp/other\n").check();
    let told = wrong.expect_err("no size").to_string();
    assert!(told.lines().count() == 2 && told.contains("test.fio:1: job 'x': needs 'size'"), "{told}");
    assert!(simulation("[x]\nrw=read\nfilename=/dev/sdx\noffset=2t\n").check().is_err());
}

#[test]
fn arrivals_by_chance_have_the_rate_in_the_mean() {
    let job = outcome("[x]\nrw=randread\nsize=40m\nnumber_ios=2000\nrate_iops=500\nrate_process=poisson\ndirect=1\nioengine=libaio\niodepth=32\nio_submit_mode=offload\n").jobs.remove(0);
    let seconds = job.elapsed_ns as f64 / 1e9;
    assert!((3.6..=4.4).contains(&seconds), "{seconds} s for 2000 calls at 500 a second");
}

#[test]
fn logs_have_a_line_a_call() {
    let outcome = outcome("[x]\nrw=randrw\nsize=256k\nwrite_lat_log\n[y]\nrw=read\nsize=64k\n");
    assert_eq!((outcome.logs.len(), outcome.logs[0].number, outcome.logs[0].calls.len()), (1, 1, 64));
    assert_eq!(outcome.logs[0].logs.latency.as_deref(), Some("x"));
}

#[test]
fn files_that_are_unlinked_are_written_no_more() {
    let outcome = outcome("[x]\nrw=write\nsize=1m\nunlink=1\n");
    let written = outcome.devices[0].bytes.1;
    assert!(written < 256 << 10, "{written} of a MiB that nobody needs");
    assert!(outcome.unwritten.is_empty());
}
