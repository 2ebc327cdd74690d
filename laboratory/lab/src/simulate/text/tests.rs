use afflux_report::terminal::Terminal;

use super::super::tests::run;
use super::summary;

#[test]
fn a_run_is_shown_in_lines_that_line_up() {
    let text = summary(&run(), Terminal::PLAIN);
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap(), "Simulated 44 s in 0.1 s: backup.fio on usb2-disk, 1.00 GiB of cache, 8 CPUs");
    for line in [
        "  job            call      bytes   throughput    calls   IOPS",
        "  idle           none",
        "  backup         write   1.00 GB    25.0 MB/s   15,259    381",
        "                 fsync                              12    0.3",
        "  <desktop> ×4   read    4.10 MB     205 kB/s    1,000     50",
        "  <desktop>: read: Input/output error (EIO), once",
        "  backup         write   61.5 µs   41.0 µs   82.0 µs    205 µs   820 µs   4.10 ms   4.92 ms",
        "  usb2-disk   4.10 MB   1.00 GB   97.7 %      3,000      335 kB   1,204               2",
        "Over time, 1.10 s a letter",
        "              dirty       ▁▂▄▅▇███████████████████████████████████   100 MiB of 100 MiB",
        "  writers paused: dirty limit                    1,204 times, 46.0 s in sum, 38.2 ms on average",
        "  all on disk after the last write               4.00 s",
        "  written for each byte that became dirty        1.03",
        "  lost if the power failed at the worst moment   105 MB",
        "  CPUs busy                                      0.9 % of 8",
        "seed 7, trace 00abcdef01234567 (--seed N for another run)",
    ] {
        assert!(text.lines().any(|it| it == line), "{line:?} in\n{text}");
    }
    assert!(!text.contains('\x1b'));
}

#[test]
fn a_run_without_anything_is_shown_too() {
    let mut run = run();
    run.figures.jobs.clear();
    run.figures.devices.clear();
    run.figures.engine.pauses.clear();
    run.figures.virtual_ns = 0;
    let text = summary(&run, Terminal::PLAIN);
    assert!(text.contains("writers paused") && text.contains("never"), "{text}");
}

#[test]
fn units_are_explained_once() {
    let text = summary(&run(), Terminal::PLAIN);
    assert_eq!(text.matches("are decimal").count(), 1, "{text}");
}
