//! The rules that hold unless the configuration has others of the same names.

/// In the words of the configuration.
pub const DEFAULTS: &str = r#"
# A guarantee was taken back.
[[rule]]
name = "guarantee-withdrawn"
severity = "critical"
per = "app"
window_s = 1
when = [{ events = ["withdrawn"] }]

# An order of a tool or another app cost a guarantee.
[[rule]]
name = "guarantee-lost-to-a-change"
severity = "critical"
window_s = 2
when = [
    { events = ["withdrawn"] },
    { events = ["set", "policy", "adjusted", "reloaded", "joined", "changed"] },
]

# A protected app misses deadlines again and again.
[[rule]]
name = "protected-late"
severity = "critical"
per = "app"
window_s = 10
when = [{ events = ["late"], count = 10 }]

# A protected app stopped drawing.
[[rule]]
name = "protected-stalled"
severity = "critical"
per = "app"
window_s = 1
when = [{ events = ["stalled"] }]

# A supervised app stopped drawing.
[[rule]]
name = "supervised-silent"
severity = "critical"
per = "app"
window_s = 1
when = [{ events = ["silent"] }]

# An app seems to say too early when its groups end.
[[rule]]
name = "early-ends"
severity = "warning"
per = "app"
window_s = 1
when = [{ events = ["early-ends"] }]

# Deadlines are missed while clients are refused or evicted: an attack that has an effect.
[[rule]]
name = "attack-with-effect"
severity = "critical"
window_s = 5
when = [
    { events = ["late", "stalled", "silent", "withdrawn"] },
    { events = ["refused", "denied", "quarantined"], count = 20 },
]

# A user tries what it may not do.
[[rule]]
name = "denied-orders"
severity = "warning"
per = "user"
window_s = 60
when = [{ events = ["denied"], count = 3 }]

# A user is refused very often.
[[rule]]
name = "refused-often"
severity = "warning"
per = "user"
window_s = 10
when = [{ events = ["refused"], count = 50 }]

# A program is evicted and comes back.
[[rule]]
name = "evicted-again"
severity = "warning"
per = "exe"
window_s = 300
when = [{ events = ["quarantined"], count = 3 }]

# Apps come and go very fast.
[[rule]]
name = "churn"
severity = "warning"
per = "user"
window_s = 10
when = [{ events = ["joined"], count = 60 }]

# Contracts are refused for lack of capacity again and again.
[[rule]]
name = "over-capacity"
severity = "warning"
per = "user"
window_s = 60
when = [{ events = ["over-capacity"], count = 20 }]

# The scheduler contradicted itself.
[[rule]]
name = "broken"
severity = "critical"
window_s = 1
when = [{ events = ["broken"] }]

# The daemon restarts again and again.
[[rule]]
name = "restarts"
severity = "warning"
window_s = 600
when = [{ events = ["started"], count = 4 }]

# Records were lost: the audit has gaps.
[[rule]]
name = "records-lost"
severity = "warning"
window_s = 60
when = [{ events = ["lost"] }]
"#;
