use afflux_report::Fields;

use super::*;

#[test]
fn a_reader_sees_units_and_not_plain_numbers() {
    let params = Fields::new()
        .with("centisecs", 0)
        .with("background_bytes", 25_000_000)
        .with("link_bits_per_s", 100_000_000)
        .with("memory_bytes", 3_u64 << 30)
        .with("size_mib", 400)
        .with("request_kib", 24)
        .with("tuned", false);
    let row = crate::machine::row("test", "it", params, Fields::new(), Fields::new());
    let of = |name| (title_of(name), shown(&row, name));
    let is = |name, wanted: (&str, &str)| assert_eq!(of(name), (wanted.0.to_owned(), wanted.1.to_owned()));
    is("centisecs", ("centisecs", "off"));
    is("background_bytes", ("background", "25.0 MB"));
    is("link_bits_per_s", ("link", "100 Mbit/s"));
    is("memory_bytes", ("memory", "3.00 GiB"));
    is("size_mib", ("size", "400 MiB"));
    is("request_kib", ("request", "24.0 KiB"));
    is("tuned", ("tuned", ""));
    is("absent", ("absent", ""));
}

#[test]
fn a_row_fits_by_any_of_several_values() {
    let row = crate::machine::row("test", "it", Fields::new().with("size", 4), Fields::new(), Fields::new());
    assert!(fits(&row, &[("size", "3|4"), ("variant", "it")]) && fits(&row, &[("size", "")]));
    assert!(!fits(&row, &[("size", "3|5")]) && !fits(&row, &[("other", "")]));
}
