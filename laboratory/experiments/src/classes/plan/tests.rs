#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::classes::CLASSES;
use crate::experiment::tests::asked;

fn plan(pairs: &[(&str, &str)], quick: bool) -> Result<Plan, String> {
    let request = asked(&CLASSES, pairs).map(|request| Request { quick, ..request });
    request.and_then(|request| Plan::read(&request)).map_err(|error| error.to_string())
}

#[test]
fn what_cannot_be_used_is_refused_with_what_could_be() {
    for (name, value, words) in [
        ("loads", "all", "'all' is none of one, four, files, competing"),
        ("places", "moon", "'moon' is none of disk, memory"),
        ("places", "disk,disk", "each once"),
        ("policy", "sometimes", "there is no policy 'sometimes'"),
        ("knobs", "no_such_knob=1", "no_such_knob"),
        ("size", "1MB", "4 MiB to 100 GB"),
        ("block", "1000", "4 KiB"),
        ("block", "6000", "multiple of 4 KiB"),
        ("repeats", "21", "1 to 20"),
        ("memory", "x", "'x' is not a size"),
        ("directory", "/no/such/place", "No such file"),
    ] {
        let error = plan(&[(name, value)], false).unwrap_err();
        assert!(error.contains(&format!("--{name} ")) && error.contains(value) && error.contains(words), "{error}");
    }
    let error = plan(&[("size", "32MiB"), ("block", "2MiB")], false).unwrap_err();
    assert!(error.starts_with("--size 32MiB: ") && error.contains("64.0 MiB"), "{error}");
}

#[test]
fn classes_of_each_load() {
    let methods = [KernelMethod::Buffered, KernelMethod::Direct].map(Method::Kernel);
    let methods = [methods[0], methods[1], Method::Ours(0)];
    let writers = |load: Load| load.classes(&methods).iter().map(|it| it[0].writers).collect::<Vec<_>>();
    assert_eq!([Load::One, Load::Four, Load::Files].map(writers), [[1; 3], [4; 3], [32; 3]]);
    let competing: Vec<Vec<Method>> =
        Load::Competing.classes(&methods).iter().map(|it| it.iter().map(|class| class.method).collect()).collect();
    let ordinary = methods[0];
    let expected = [[ordinary, methods[0]], [ordinary, methods[1]], [ordinary, methods[2]], [methods[2], methods[2]]];
    assert_eq!(competing, expected, "each beside a buffered one, and two of ours");
}

#[test]
fn the_quick_form_is_small() {
    let quick = plan(&[], true).unwrap();
    assert_eq!((quick.run.repeats, quick.bytes, quick.engine.memory_bytes), (1, 16 << 20, 64 << 20));
    let given = plan(&[("repeats", "9"), ("size", "32MiB"), ("memory", "128MiB")], true).unwrap();
    assert_eq!(
        (given.run.repeats, given.bytes, given.engine.memory_bytes),
        (9, 32 << 20, 128 << 20),
        "what is given counts"
    );
    assert!(quick.engines.iter().all(|engine| engine.memory_bytes == 64 << 20));
    assert!(quick.expected_s() < 60);
}
