use super::*;

#[test]
fn limits_by_table() {
    let of = |dirty_ratio, background_ratio, background_bytes| {
        let sysctl = Sysctl { dirty_ratio, background_ratio, background_bytes, ..Sysctl::default() };
        let Limits { dirty, background } = limits(1_000_000, &sysctl);
        (dirty, background)
    };
    assert_eq!(of(20, 10, 0), (200_000, 100_000));
    assert_eq!(of(1, 2, 0), (50_000, 20_000), "the ratio is at least 5");
    assert_eq!(of(20, 30, 0), (200_000, 100_000), "half of the limit instead");
    assert_eq!(of(20, 10, 4097), (200_000, 2));
}
