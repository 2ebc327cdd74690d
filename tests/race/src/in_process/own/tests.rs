use super::*;

#[test]
fn the_cache_takes_its_knobs() {
    cache(1 << 20).unwrap();
}
