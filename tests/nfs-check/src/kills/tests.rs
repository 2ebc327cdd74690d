use std::time::Duration;

use afflux_rig::Raced;

use super::acknowledged::{File, Lost};
use super::figures::Figures;
use super::processes::Which;
use super::report;

#[test]
fn lost_bytes_are_counted_by_what_the_client_was_told() {
    let mut file = File::empty(Vec::new());
    file.begin(0, b"durable");
    file.acknowledged(7, false);
    file.begin(5, b"LEFT");
    file.acknowledged(4, true);
    assert_eq!((file.committed(), file.unstable()), (5, 4));
    assert_eq!(file.lost(b"durabLEFT"), Lost::default());
    assert_eq!(file.lost(b"durable"), Lost { unstable: 4, committed: 0 });
    assert_eq!(file.lost(b""), Lost { unstable: 4, committed: 5 });
    file.begin(0, b"pending calls");
    assert_eq!(file.lost(b"pending calls and more"), Lost::default(), "an unanswered WRITE may have happened");
    assert_eq!(file.lost(b"pendinLEFT"), Lost { unstable: 3, committed: 0 });
}

#[test]
fn a_new_verifier_has_the_client_send_again() {
    let mut figures = Figures {
        unstable: 3 << 20,
        committed: 5,
        lost: Lost { unstable: 2, committed: 0 },
        off_disk: Some(Lost { unstable: 7, committed: 1 }),
        verifier_changed: true,
        null: Duration::from_millis(20),
        read: Duration::from_millis(30),
        write: Duration::from_millis(40),
    };
    let kills = Raced::new(&[Which::Afflux, Which::Ganesha], 2, |_, _| Ok::<_, ()>(figures));
    let table = report::table(&kills);
    assert!(table.starts_with("|  | afflux | ganesha |\n") && table.contains("| kills | 2 | 2 |\n"), "{table}");
    assert!(table.contains("| to send again, MiB | 3.0 (3.0–3.0) | 3.0 (3.0–3.0) |\n"), "{table}");
    assert!(table.contains("restart, bytes | 4 | 4 |\n") && table.contains("lost | 2 | 2 |\n"), "{table}");
    assert_eq!(report::lines(&kills).lines().count(), 4);
    assert!(report::json("one", &figures).contains("\"unstable_lost\":2,\"committed_lost\":0,"));
    figures.verifier_changed = false;
    assert_eq!(figures.again(), 0);
}
