//! The mounts that stay in a view, by the kernel's table.

use std::path::Path;

use super::MountTable;

/// A table of rows of number, parent and mount point; 1 is the root's mount.
fn table(rows: &[(u64, u64, &str)]) -> MountTable {
    let line = |(number, parent, mount_point): &(u64, u64, &str)| {
        format!("{number} {parent} 0:1 / {mount_point} rw - x x rw\n")
    };
    MountTable::of(rows.iter().map(line).collect::<String>().as_bytes(), 1)
}

/// The mount points that are unmounted, in order, if the host gives up all but `stays`.
fn unmounted(mut mounts: MountTable, stays: &str) -> Vec<String> {
    let mut mount_points = Vec::new();
    while let Some(mount_point) = mounts.next_unneeded() {
        mounts.end_try(&mount_point, mount_point != Path::new(stays));
        mount_points.push(mount_point.display().to_string());
    }
    mount_points
}

#[test]
fn mounts_above_and_below_a_needed_one_stay_and_others_go_from_the_top() {
    let rows = [
        (1, 0, "/"),
        (2, 1, "/srv"),
        (3, 2, "/srv/data"),
        (4, 3, "/srv/data/below"),
        (5, 2, "/srv/database"),
        (6, 1, "/media/stick"),
        (7, 6, "/media/stick/in\\040it"),
    ];
    let mut mounts = table(&rows);
    mounts.keep(3);
    mounts.keep_below(Path::new("/srv/data"));
    assert_eq!(unmounted(mounts, ""), ["/srv/database", "/media/stick"]);
    assert_eq!(unmounted(table(&rows), ""), ["/srv", "/media/stick"]);
    assert_eq!(unmounted(table(&rows), "/srv"), ["/srv", "/srv/data", "/srv/database", "/media/stick"]);
}

#[test]
fn stacked_mounts_go_one_by_one_and_hidden_ones_are_left() {
    let rows = [(1, 0, "/"), (2, 1, "/a"), (3, 2, "/a"), (4, 1, "/b/c"), (5, 1, "/b"), (6, 3, "/a/x")];
    assert_eq!(unmounted(table(&rows), ""), ["/a", "/a", "/b", "/b/c"], "both at one place, then what another hid");
    let mut mounts = table(&rows);
    mounts.keep(5);
    mounts.keep(3);
    assert_eq!(unmounted(mounts, ""), ["/a/x"], "the way to the hidden mount leads elsewhere");
}
