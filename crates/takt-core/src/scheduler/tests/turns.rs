//! A time-shared GPU: apps have it in turn, so groups in flight together end at about the same time and
//! completions come in any order.

use expect_test::expect;

use super::check;

#[test]
fn the_gpu_of_the_rig_serves_apps_round_robin() {
    check(
        "gpu time-shared slice=10 switch=2
         mpcg 2
         until 1000
         A 2
         B 1
         @0 A 30
         @0 B 20
         @100 B 5             # a switch from A to B
         @110 B 25            # no other app has work, so there are no switches",
        expect![[r#"
            0 grant A 30 for 0
            0 grant B 20 for 0
            46 end B 20
            58 end A 30
            100 grant B 5 for 0
            107 end B 5
            110 grant B 25 for 0
            135 end B 25
        "#]],
    );
}
