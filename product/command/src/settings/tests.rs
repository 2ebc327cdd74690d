use super::{bytes, default_bytes};
use afflux_linux_device::HostMemory;

fn host(total_mib: u64, available_mib: u64) -> HostMemory {
    HostMemory { total_bytes: total_mib << 20, available_bytes: available_mib << 20 }
}

#[test]
fn the_default_is_a_quarter_of_memory_but_leaves_half_of_what_is_free() {
    assert_eq!(default_bytes(host(8192, 8000)), 2048 << 20);
    assert_eq!(default_bytes(host(8192, 1024)), 512 << 20);
    assert_eq!(default_bytes(host(128, 10)), 64 << 20);
    assert_eq!(default_bytes(host(32, 10)), 32 << 20);
}

#[test]
fn a_size_is_whole_frames_in_range() {
    let host = host(1024, 1024);
    assert_eq!(bytes(host, "64MiB"), Ok(64 << 20));
    assert_eq!(bytes(host, "64 mib"), Ok(64 << 20));
    assert_eq!(bytes(host, "100MB"), Ok(100_000_000 / 4096 * 4096));
}

#[test]
fn a_bad_size_is_told_with_the_range() {
    for text in ["", "much", "-1", "12 parsecs", "1MiB", "0", "99999TiB", "15.9MiB"] {
        let error = bytes(host(1024, 1024), text).unwrap_err();
        assert!(error.contains("16.0 MiB to 1.00 GiB"), "{error}");
    }
}

#[cfg(feature = "object")]
#[test]
fn a_form_of_stored_bytes_is_one_of_the_list() {
    use afflux_object::Compression;

    use super::compression;

    for (text, expected) in [
        ("zstd", Compression::default()),
        ("zstd:1", Compression::Zstd(1)),
        ("zstd:19", Compression::Zstd(19)),
        ("lz4", Compression::Lz4),
        ("none", Compression::None),
    ] {
        assert_eq!(compression(text), Ok(expected), "{text}");
    }
    for text in ["", "zstd:", "zstd:0", "zstd:20", "zstd:x", "lz4:1", "none:1", "ZSTD", "gzip"] {
        let told = compression(text).unwrap_err();
        assert!(told.ends_with("zstd, zstd:1 to zstd:19, lz4, none"), "{text}: {told}");
    }
}
