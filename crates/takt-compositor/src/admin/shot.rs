//! Pictures of outputs as PNG.

use takt_cockpit::control::Shot;
use takt_cockpit::geometry::Rect;

use crate::cockpit::Controls;
use crate::output::Capture;

/// What an output shows, or a part of it.
pub(super) fn take(controls: &Controls, name: &str, part: Option<Rect>) -> Result<(Shot, Vec<u8>), String> {
    let outputs = &controls.config().outputs;
    let Some(output) = outputs.iter().position(|output| output.name == name) else {
        let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        return Err(format!("there is no output {name:?}: use one of {}", names.join(", ")));
    };
    let size = outputs[output].size;
    if let Some(part) = part.filter(|part| !Rect::of(size).covers(*part)) {
        return Err(format!("{part} is not inside of {name}, which has {size}"));
    }
    let capture = controls.capture(output, part)?;
    let png = encode(&capture).map_err(|error| format!("the picture cannot be written: {error}"))?;
    let shot = Shot {
        output: name.to_owned(),
        size: capture.size,
        refresh: capture.refresh.0,
        at_ns: capture.at.as_ns(),
        bytes: png.len() as u64,
    };
    Ok((shot, png))
}

/// Displays have no alpha, so pictures have none.
fn encode(capture: &Capture) -> Result<Vec<u8>, png::EncodingError> {
    let side = |side: i32| u32::try_from(side).unwrap_or_default();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, side(capture.size.width), side(capture.size.height));
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let colours: Vec<u8> = capture
        .bytes
        .as_chunks::<4>()
        .0
        .iter()
        .flat_map(|[red, green, blue, _]| [*red, *green, *blue])
        .collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&colours)?;
    writer.finish()?;
    Ok(file)
}
