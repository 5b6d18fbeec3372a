// The way from an image file to the pixels that the classifier sees, as firststep.data.Preprocessing goes it:
// upright, over white, the central square, resized by Pillow's antialiased bilinear filter.

const LONGEST = 4096; // pixels of a canvas's side; telephones refuse much larger ones
const BITS = 2 ** 22; // of Pillow's fixed-point weights

/** Blob or ImageBitmap → Uint8Array [size, size, channels]. */
async function pixelsOf(picture, { image_size: size, channels }) {
  const bitmap = await createImageBitmap(picture, { imageOrientation: "from-image", colorSpaceConversion: "none" });
  const { width, height } = bitmap;
  const side = Math.min(width, height);
  const shrunk = Math.min(1, LONGEST / side); // only there the browser's own filter is used
  const scaled = side * shrunk;
  const [left, top] = [(width * shrunk - scaled) / 2, (height * shrunk - scaled) / 2];
  const margin = Math.ceil(scaled / size) + 1; // the filter sees pixels beyond the square
  const across = span(left, scaled, margin, width * shrunk);
  const down = span(top, scaled, margin, height * shrunk);
  const canvas = new OffscreenCanvas(across.count, down.count);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#fff";
  context.fillRect(0, 0, across.count, down.count);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, -across.first, -down.first, width * shrunk, height * shrunk);
  bitmap.close();
  const { data } = context.getImageData(0, 0, across.count, down.count);
  const source = channels === 1 ? grey(data) : colours(data);
  const rows = resized(source, { lines: down.count, length: across.count, channels, size, from: left - across.first, extent: scaled });
  const columns = resized(turned(rows, down.count, size, channels), { lines: size, length: down.count, channels, size, from: top - down.first, extent: scaled });
  return turned(columns, size, size, channels);
}

/** Whole pixels that the square and the margin of the filter cover. */
function span(start, extent, margin, length) {
  const first = Math.max(0, Math.floor(start) - margin);
  return { first, count: Math.min(Math.floor(length), Math.ceil(start + extent) + margin) - first };
}

function colours(data) {
  const found = new Uint8Array((data.length / 4) * 3);
  for (let from = 0, to = 0; from < data.length; from += 4, to += 3) {
    found[to] = data[from];
    found[to + 1] = data[from + 1];
    found[to + 2] = data[from + 2];
  }
  return found;
}

/** Luma, with Pillow's weights. */
function grey(data) {
  const found = new Uint8Array(data.length / 4);
  for (let place = 0; place < found.length; place++) {
    const from = 4 * place;
    found[place] = (19595 * data[from] + 38470 * data[from + 1] + 7471 * data[from + 2] + 32768) >> 16;
  }
  return found;
}

/** Every line [length, channels] becomes [size, channels]: a triangle filter as wide as an output pixel. */
function resized(source, { lines, length, channels, size, from, extent }) {
  const found = new Uint8Array(lines * size * channels);
  const scale = extent / size;
  const support = Math.max(scale, 1);
  for (let place = 0; place < size; place++) {
    const centre = from + (place + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - support + 0.5));
    const last = Math.min(length, Math.trunc(centre + support + 0.5));
    const raw = Array.from({ length: last - first }, (_, number) => Math.max(0, 1 - Math.abs((number + first - centre + 0.5) / support)));
    const total = raw.reduce((sum, weight) => sum + weight, 0);
    const weights = raw.map((weight) => Math.trunc(0.5 + (weight / total) * BITS));
    for (let line = 0; line < lines; line++) {
      for (let channel = 0; channel < channels; channel++) {
        let sum = BITS / 2;
        for (let number = 0; number < weights.length; number++) sum += weights[number] * source[(line * length + first + number) * channels + channel];
        found[(line * size + place) * channels + channel] = Math.max(0, Math.min(255, Math.floor(sum / BITS)));
      }
    }
  }
  return found;
}

/** [rows, columns, channels] → [columns, rows, channels] */
function turned(source, rows, columns, channels) {
  const found = new Uint8Array(source.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      for (let channel = 0; channel < channels; channel++) found[(column * rows + row) * channels + channel] = source[(row * columns + column) * channels + channel];
    }
  }
  return found;
}
