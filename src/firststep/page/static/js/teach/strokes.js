// Strokes as points in the unit square: smoothed, drawn, and turned into a picture like those the models know.

const THICKNESS = 0.09; // of a line, in sides of the picture: 3 of 32 pixels
const FILLED = 0.62; // how much of the picture's side the drawing takes, as in the training pictures
const NEAREST = 0.006; // points closer than this are hand tremor
const PICTURE = 128; // pixels; the server makes it smaller as it does with any file

const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

/** Adds a point unless it is where the pen already is. */
export function extend(stroke, point) {
  if (stroke.length === 0 || distance(stroke.at(-1), point) >= NEAREST) stroke.push(point);
}

/** Each inner point halfway to the middle of its neighbours: corners stay, tremor goes. */
export function smoothed(stroke) {
  return stroke.map((point, place) => {
    if (place === 0 || place === stroke.length - 1) return point;
    const [before, after] = [stroke[place - 1], stroke[place + 1]];
    return { ...point, x: (2 * point.x + before.x + after.x) / 4, y: (2 * point.y + before.y + after.y) / 4 };
  });
}

/** Curves through the middles between points. */
function trace(context, stroke, side) {
  const at = (point) => [point.x * side, point.y * side];
  context.beginPath();
  context.moveTo(...at(stroke[0]));
  if (stroke.length === 1) context.lineTo(stroke[0].x * side + 0.1, stroke[0].y * side);
  for (let place = 1; place < stroke.length; place++) {
    const [point, next] = [stroke[place], stroke[place + 1]];
    if (next === undefined) context.lineTo(...at(point));
    else context.quadraticCurveTo(...at(point), ...at({ x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 }));
  }
  context.stroke();
}

export function paint(context, strokes, side, colour = "#14181f") {
  context.lineCap = context.lineJoin = "round";
  context.strokeStyle = colour;
  for (const stroke of strokes) {
    const pressure = stroke[0].pressure ?? 0.5;
    context.lineWidth = THICKNESS * side * (0.7 + 0.6 * pressure);
    trace(context, stroke, side);
  }
}

/** In the middle, and of the usual size: where and how large somebody draws does not matter. */
function centred(strokes) {
  const points = strokes.flat();
  const [xs, ys] = [points.map((point) => point.x), points.map((point) => point.y)];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const extent = Math.max(right - left, bottom - top, 0.2); // a dot stays a dot
  const scale = FILLED / extent;
  const move = (point) => ({
    ...point,
    x: 0.5 + (point.x - (left + right) / 2) * scale,
    y: 0.5 + (point.y - (top + bottom) / 2) * scale,
  });
  return strokes.map((stroke) => stroke.map(move));
}

/** Dark ink on white paper, as a PNG file. */
export function picture(strokes) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = PICTURE;
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, PICTURE, PICTURE);
  paint(context, centred(strokes), PICTURE, "#000");
  return new Promise((resolve) =>
    canvas.toBlob((blob) => resolve(new File([blob], "drawing.png", { type: "image/png" })), "image/png"),
  );
}
