//! Configurations, right and wrong.

use super::*;
use crate::geometry::{Rect, Size};

const OUTPUTS: &str = "[[output]]\nname='cluster'\nsize='1440x540'\ndriver=true\n\
    [[output]]\nname='center'\nsize='1280x720'\nrefresh_hz=30\n\
    [[domain]]\nname='instruments'\nshells=['xdg','ivi']\n[[domain]]\nname='apps'\n";

fn parsed(rest: &str) -> Result<Cockpit, String> {
    Cockpit::parse(&format!("{OUTPUTS}{rest}")).map_err(|mistake| mistake.to_string())
}

#[test]
fn sections_find_each_other() {
    let cockpit = parsed(
        "[[window]]\nname='dial'\ndomain='instruments'\napp_id='dial'\nivi_id=7001\noutput='cluster'\n\
         area='720x540+720+0'\nmust_be_visible=true\n\
         [[window]]\nname='any'\ndomain='apps'\napp_id='*'\noutput='center'\ninstances_max=4\n\
         [[input]]\nname='knob'\nkind='rotary'\noutput='center'\n\
         [[client]]\nname='dial'\ndomain='instruments'\ncommand=['dial']\nfps=60\netpf_ms=3\n",
    )
    .expect("fine");
    assert_eq!(cockpit.outputs[1].size, Size::new(1280, 720));
    assert_eq!(cockpit.outputs[1].grid.mhz(), 30_000);
    let dial = &cockpit.rules[0];
    assert_eq!((dial.domain, dial.output, dial.area), (0, 0, Rect::new(720, 0, 720, 540)));
    assert_eq!(dial.visible_within.map(|within| within.as_ns()), Some(1_000_000_000));
    assert_eq!(dial.animation_max.map(|max| max.as_ns()), Some(2_000_000_000), "before the driver");
    let any = &cockpit.rules[1];
    assert_eq!((any.area, any.animation_max), (Rect::new(0, 0, 1280, 720), None));
    assert!(dial.is_for(Shell::Ivi) && dial.is_for(Shell::Xdg) && !any.is_for(Shell::Ivi));
    assert_eq!((cockpit.inputs[0].output, cockpit.inputs[0].hands), (1, Hands::One));
    assert_eq!(cockpit.clients[0].fps_mhz, Some(60_000));
    assert_eq!(
        (cockpit.output("center"), cockpit.domain("apps"), cockpit.domain("x")),
        (Some(1), Some(1), None)
    );
}

#[test]
fn mistakes_name_line_value_and_remedy() {
    let window = |keys: &str| format!("[[window]]\nname='w'\ndomain='apps'\noutput='center'\n{keys}");
    for (text, said) in [
        (window(""), "line 15: window \"w\": name = w: its domain has the shell \"xdg\": add app_id"),
        (
            window("app_id='*'\narea='2000x1+0+0'"),
            "line 19: window \"w\": area = \"2000x1+0+0\": its output has",
        ),
        (window("app_id='*'\narea='10x10'"), "line 19: window \"w\": area = \"10x10\": use WIDTHxHEIGHT+X+Y"),
        (window("app_id='*'\narea='10x10+-1+0'"), "line 19: window \"w\": area = \"10x10+-1+0\": use WIDTHx"),
        (
            window("app_id='*'\nmust_be_visible=true\nhidden=true"),
            "line 20: window \"w\": hidden = true: it must",
        ),
        (
            window("app_id='*'\nanimation_s_max=0.0"),
            "line 19: window \"w\": animation_s_max = 0: use 0.1 to 60",
        ),
        (window("app_id='*'\ninstances_max=0"), "line 19: window \"w\": instances_max = 0: use 1 to 64"),
        (
            window("app_id='*'\n[[window]]\nname='w'\ndomain='apps'\noutput='center'"),
            "line 20: window \"w\": name = w: name each window once",
        ),
        (
            "[[output]]\nname='x'\nsize='0x1'\n".to_owned(),
            "line 16: output \"x\": size = \"0x1\": use WIDTHx",
        ),
        (
            "[[output]]\nname='x'\nsize='1x1'\netpf_ms=20.0\n".to_owned(),
            "line 17: output \"x\": etpf_ms = 20: use less than a refresh, 16.667 ms",
        ),
        (
            "[[domain]]\nname='a b'\n".to_owned(),
            "line 15: domain \"a b\": name = \"a b\": use letters, digits",
        ),
        ("[[domain]]\nname='x'\nshells=[]\n".to_owned(), "line 16: domain \"x\": shells = []: use \"xdg\""),
        (
            "[[input]]\nname='x'\nkind='keys'\noutput='y'\n".to_owned(),
            "line 17: input \"x\": output = y: use one of cluster, center",
        ),
        (
            "[[client]]\nname='x'\ndomain='apps'\ncommand=[]\n".to_owned(),
            "line 17: client \"x\": command = []: name a program",
        ),
        (
            "[[client]]\nname='x'\ndomain='apps'\ncommand=['a']\netpf_ms=3.0\n".to_owned(),
            "line 18: client \"x\": etpf_ms = 3: add fps",
        ),
    ] {
        let found = parsed(&text).expect_err(&text);
        assert!(found.starts_with(said), "{text}\n{found}");
    }
    let unknown = parsed("[[window]]\nnam='x'").expect_err("no such key");
    assert!(unknown.contains("unknown field `nam`"), "{unknown}");
    let hands = parsed("[[input]]\nname='x'\nkind='keys'\nhands=3").expect_err("three hands");
    assert!(hands.contains("use 0, 1 or 2"), "{hands}");
    let none = Cockpit::parse("").expect_err("no output").to_string();
    assert!(none.starts_with("output = none: add an [[output]]"), "{none}");
}

#[test]
fn windows_that_must_be_visible_do_not_cover_each_other() {
    let window = |name: &str, area: &str| {
        let keys = "domain='instruments'\noutput='cluster'\nmust_be_visible=true";
        format!("[[window]]\nname='{name}'\napp_id='{name}'\narea='{area}'\n{keys}\n")
    };
    parsed(&(window("a", "10x10+0+0") + &window("b", "10x10+10+0"))).expect("side by side");
    let found = parsed(&(window("a", "10x10+0+0") + &window("b", "10x10+9+9"))).expect_err("they overlap");
    assert!(found.starts_with("line 24: window \"b\": area = 10x10+9+9: window \"a\""), "{found}");
}
