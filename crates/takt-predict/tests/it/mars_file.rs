//! Models as bytes: what is written is read back, and nothing else is believed.

use proptest::prelude::*;
use takt_predict::mars::{BYTES_MAX, Factor, FileError, HingeShape, Model, ModelError, decode, encode};

fn factor(variables: usize) -> impl Strategy<Value = Factor> {
    let shape = prop::sample::select(vec![HingeShape::Linear, HingeShape::Above, HingeShape::Below]);
    let knot = prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL;
    (0..variables, knot, shape).prop_map(|(variable, knot, shape)| Factor { variable, knot, shape })
}

fn model() -> impl Strategy<Value = Model> {
    let number = prop::num::f64::NORMAL | prop::num::f64::ZERO;
    (1_usize..200).prop_flat_map(move |variables| {
        let term = (number, prop::collection::vec(factor(variables), 1..5));
        (number, prop::collection::vec(term, 0..30)).prop_map(move |(intercept, terms)| {
            let mut model = Model::new(variables, intercept).expect("valid");
            for (coefficient, factors) in terms {
                model.push(coefficient, &factors).expect("valid");
            }
            model
        })
    })
}

/// A text with the hash that belongs to it.
fn sealed(body: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = body.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{body}sum {hash:016x}\n")
}

#[test]
fn the_format_is_what_it_was() {
    let mut model = Model::new(2, 5.0).unwrap();
    model.push(2.0, &[Factor { variable: 0, knot: 30.0, shape: HingeShape::Above }]).unwrap();
    let product = [
        Factor { variable: 0, knot: 30.0, shape: HingeShape::Below },
        Factor { variable: 1, knot: -0.5, shape: HingeShape::Linear },
    ];
    model.push(-0.25, &product).unwrap();
    let body = "takt-mars 1\nvariables 2\nintercept 5\nterm 2 >0@30\nterm -0.25 <0@30 =1@-0.5\n";
    assert_eq!(encode(&model), sealed(body));
    assert_eq!(decode(sealed(body).as_bytes()), Ok(model));
}

#[test]
fn what_is_no_model_is_refused_with_a_reason() {
    let head = "takt-mars 1\nvariables 2\nintercept 5\n";
    let line = |line| Err(FileError::Line { line });
    let wrong = |line, source| Err(FileError::Model { line, source });
    let many = format!("{head}term 1{}\n", " >0@1".repeat(100_000));
    let cases = [
        (String::new(), Err(FileError::Header)),
        ("takt-mars 2\n".to_owned(), Err(FileError::Header)),
        (head.to_owned(), Err(FileError::Damaged)),
        (sealed("takt-mars 1\n"), line(2)),
        (sealed("takt-mars 1\nvariables -1\nintercept 5\n"), line(2)),
        (sealed("takt-mars 1\nvariables 2\n"), line(3)),
        (sealed("takt-mars 1\nvariables 99999999999\nintercept 5\n"), wrong(3, ModelError::TooManyVariables)),
        (sealed("takt-mars 1\nvariables 2\nintercept inf\n"), wrong(3, ModelError::NotFinite)),
        (sealed(&format!("{head}term 1\n")), wrong(4, ModelError::Degree)),
        (sealed(&format!("{head}term 1 >2@0\n")), wrong(4, ModelError::Variable)),
        (sealed(&format!("{head}term NaN >1@0\n")), wrong(4, ModelError::NotFinite)),
        (sealed(&format!("{head}term 1 ?1@0\n")), line(4)),
        (sealed(&format!("{head}\n")), line(4)),
        (sealed(&many), wrong(4, ModelError::Degree)),
        ("x".repeat(BYTES_MAX + 1), Err(FileError::TooLong)),
    ];
    for (text, expected) in cases {
        assert_eq!(decode(text.as_bytes()), expected, "{:.80}", text);
    }
    assert_eq!(decode(&[0xff, 0xfe]), Err(FileError::Header));
}

proptest! {
    #[test]
    fn models_come_back_as_they_were(model in model()) {
        prop_assert_eq!(decode(encode(&model).as_bytes()), Ok(model));
    }

    #[test]
    fn damage_is_noticed(model in model(), at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let mut bytes = encode(&model).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(decode(&bytes).is_err());
    }

    /// The hash fits here, so that the parser itself has to cope.
    #[test]
    fn sealed_nonsense_does_not_panic(
        model in model(),
        at in any::<prop::sample::Index>(),
        garbage in "[ -~\\n]{0,12}|[0-9><=@. \\n-]{0,12}",
    ) {
        let text = encode(&model);
        let mut body = text[..text.rfind("sum ").unwrap()].to_owned();
        let at = at.index(body.len());
        body.replace_range(at..(at + garbage.len() / 2).min(body.len()), &garbage);
        if let Ok(read) = decode(sealed(&body).as_bytes()) {
            let row = vec![0.5; read.variables()];
            std::hint::black_box(read.predict(&row));
        }
    }

    #[test]
    fn any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decode(&bytes).is_err());
    }
}
