use super::{Event, event};

#[test]
fn orders_are_lines_of_their_own_and_all_else_is_text() {
    let text = |line: &str| Event::Text(line.to_owned());
    for (line, expected) in [
        ("@case fsx:wsize=4096@knfsd\n", Event::Case("fsx:wsize=4096@knfsd".to_owned())),
        ("@end fsx 77\r\n", Event::End(77)),
        ("@end fsx", text("@end fsx")),
        ("@host monitor device_del disk-vdd", Event::Monitor("device_del disk-vdd".to_owned())),
        ("@host server start", Event::Server("start".to_owned())),
        ("@host load knfsd 2049 20048 /srv 3", Event::Load("knfsd 2049 20048 /srv 3".to_owned())),
        ("@reset", Event::Reset),
        ("@all", Event::All),
        (" @all", text(" @all")),
        ("= 3 kills", text("= 3 kills")),
    ] {
        assert_eq!(event(line), expected, "{line:?}");
    }
}
