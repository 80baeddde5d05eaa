"""A picture in SVG, written element by element: shared by the scripts that draw the pictures of docs/."""

INK, FAINT, PAPER = "#1f2933", "#7b8794", "#ffffff"


class Drawing:
    """SVG elements on white paper, in the order in which they are drawn."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.elements = width, height, title, []

    def box(self, x, y, width, height, fill=PAPER, label="", size=11, stroke=INK):
        self.elements.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="{stroke}"/>')
        if label != "":
            self.text(x + width / 2, y + height / 2 + size * 0.36, label, size, "middle")

    def text(self, x, y, text, size=12, anchor="start", colour=INK, bold=False):
        weight = ' font-weight="bold"' if bold else ""
        escaped = str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        self.elements.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"{weight}>{escaped}</text>')

    def line(self, x1, y1, x2, y2, colour=INK, arrow=False, dash=False):
        extra = (' marker-end="url(#arrow)"' if arrow else "") + (' stroke-dasharray="4 3"' if dash else "")
        self.elements.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}"{extra}/>')

    def circle(self, x, y, radius, fill, stroke):
        self.elements.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{stroke}"/>')

    def bracket(self, x, y1, y2, label):
        """To the right of rows y1 to y2."""
        self.elements.append(f'<path d="M{x} {y1} h8 V{y2} h-8" fill="none" stroke="{INK}"/>')
        self.text(x + 14, (y1 + y2) / 2 + 4, label)

    def legend(self, x, y, entries):
        for fill, label in entries:
            self.box(x, y - 10, 14, 12, fill)
            self.text(x + 20, y, label, 11)
            x += 40 + 6.4 * len(label)

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" font-family="sans-serif" role="img">',
            f"<title>{self.title}</title>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0 L8 4 L0 8 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{self.width}" height="{self.height}" fill="{PAPER}"/>',
        ] + self.elements + ["</svg>"]) + "\n"
