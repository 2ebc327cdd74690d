use super::*;

#[test]
fn a_sequential_reader_gets_a_doubling_window() {
    let mut window = Window::default();
    assert_eq!(window.missed(&(0..1), 256), 1..17);
    assert_eq!(window.trigger(), Some(9));
    assert_eq!(window.used(10, 256), 17..42);
    assert_eq!(window.used(30, 256), 42..94);
    for page in [60, 90, 200, 400] {
        window.used(page, 256);
    }
    assert_eq!(window.trigger(), Some(400 + 256 - 128));
}

#[test]
fn the_knob_bounds_the_window_and_zero_closes_it() {
    let mut window = Window::default();
    assert_eq!(window.missed(&(0..64), 32), 64..96);
    assert_eq!(window.missed(&(96..97), 0), 97..97);
    assert_eq!(window.trigger(), None);
    assert_eq!(window.used(100, 32), 0..0);
}

#[test]
fn a_jump_closes_the_window() {
    let mut window = Window::default();
    window.missed(&(0..1), 256);
    assert_eq!(window.missed(&(100_000..100_001), 256), 100_001..100_001);
    assert_eq!(window.trigger(), None);
    assert_eq!(window.missed(&(100_001..100_002), 256), 100_002..100_018);
}

#[test]
fn reads_somewhat_out_of_order_stay_sequential() {
    let mut window = Window::default();
    window.missed(&(256..512), 256);
    let ahead = window.missed(&(0..256), 256);
    assert_eq!(ahead, 256..512);
}
