use super::*;

fn host(total_bytes: u64) -> HostMemory {
    HostMemory { total_bytes, available_bytes: total_bytes }
}

#[test]
fn the_memory_is_bounded_by_the_host_or_the_control_group() {
    let memory = |builder: Builder, total: u64| builder.checked_memory(host(total));
    assert_eq!(memory(Cache::builder(), 24 << 30), Ok(256 << 20));
    assert_eq!(memory(Cache::builder(), 512 << 20), Ok(128 << 20), "a quarter");
    assert_eq!(memory(Cache::builder(), 2 << 20), Ok(MEMORY_BYTES_MIN));
    assert_eq!(memory(Cache::builder().memory(512 << 20), 512 << 20), Ok(512 << 20));
    let refused = memory(Cache::builder().memory((512 << 20) + 1), 512 << 20).unwrap_err();
    assert!(refused.contains("536870913") && refused.contains("536870912"), "{refused}");
    let refused = memory(Cache::builder().memory(MEMORY_BYTES_MIN - 1), 512 << 20).unwrap_err();
    assert!(refused.contains("1048575") && refused.contains("1048576"), "{refused}");
}
