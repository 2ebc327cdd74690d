use super::*;

#[test]
fn a_link_is_written_in_a_line() {
    let link = LinkOptions::parse("rate=1.5Gbit, delay=0.1ms,loss=0.05%,window=256KiB").unwrap();
    let expected = LinkOptions {
        bits_per_second: 1_500_000_000,
        delay_ns: 100_000,
        loss_per_million: 500,
        window_bytes: 256 << 10,
        ..LinkOptions::default()
    };
    assert_eq!(link, expected);
    assert_eq!(LinkOptions::parse("").unwrap(), LinkOptions::default());
    assert_eq!(
        LinkOptions::parse("packet=1000,overhead=0,retransmit=1s,loss=7ppm").unwrap().retransmit_ns,
        1_000_000_000
    );
}

#[test]
fn what_is_wrong_is_named_with_what_is_allowed() {
    for (text, words) in [
        ("speed=1Mbit", vec!["speed", "rate, delay, packet"]),
        ("rate", vec!["\"rate\"", "KEY=VALUE"]),
        ("rate=100", vec!["rate=100", "kbit, Mbit or Gbit"]),
        ("rate=100MB", vec!["rate=100MB", "1 kbit to 1000 Gbit"]),
        ("rate=0Mbit", vec!["rate=0Mbit", "1 kbit"]),
        ("rate=2000Gbit", vec!["rate=2000Gbit", "1000 Gbit"]),
        ("delay=61s", vec!["delay=61s", "60s"]),
        ("delay=0.5ns", vec!["delay=0.5ns"]),
        ("delay=-1ms", vec!["delay=-1ms"]),
        ("delay=1.ms", vec!["delay=1.ms"]),
        ("delay=99999999999999999999s", vec!["delay=99999"]),
        ("loss=51%", vec!["loss=51%", "50%"]),
        ("packet=0", vec!["packet=0", "1 to 1048576"]),
        ("window=", vec!["window=", "4GiB"]),
        ("rate=1Mbit,rate=2Mbit", vec!["rate is there twice"]),
    ] {
        let error = LinkOptions::parse(text).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
    }
}

#[test]
fn a_hundred_megabits_carry_eleven_point_eight_megabytes() {
    assert_eq!(LinkOptions::default().stream_bytes_per_second(), 11_768_530);
}
