"""Products: devices, vehicles and appliances, and what their data sheets and reviewers say."""

from __future__ import annotations

from numcolbert.corpus.builtin.generator import Concept, Domain, Measure, Noun, Pattern

PORTABLE = ("laptop", "tablet", "smartphone", "e-reader", "handheld console")
SCREENS = ("laptop", "tablet", "smartphone", "monitor", "television", "e-reader")
STORAGE = ("laptop", "tablet", "smartphone", "portable SSD", "handheld console")
WHEELED = ("electric bike", "electric scooter", "cargo bike", "electric motorcycle")
FLYING = ("camera drone", "survey drone")
SOUND = ("wireless headset", "portable speaker")
KITCHEN = ("coffee machine", "air fryer", "blender", "dishwasher")
CLEANING = ("robot vacuum", "cordless vacuum")
CAMERA = ("action camera", "dash camera")
OTHER = ("monitor", "television", "portable SSD", "projector", "cordless drill")


def _price(
    name: str, noun: tuple[Noun, ...], median: float, kind: str = "cost", share: tuple[float, float] = (0.6, 0.4)
) -> Concept:
    measures = (
        Measure("USD", median, 0.35, 9, 9500, decimals=2, share=share[0]),
        Measure("EUR", median, 0.35, 9, 9500, decimals=2, share=share[1]),
    )
    return Concept(name, noun, measures, kind)


CONCEPTS = (
    _price("price", (Noun("price", "a"), Noun("list price", "a"), Noun("retail price", "a")), 480),
    _price("repair cost", (Noun("repair cost", "a"),), 150, "upkeep", (1.0, 0.0)),
    Concept(
        "battery life",
        (Noun("battery life", "a"),),
        (Measure("hour", 11, 0.3, 1.2, 96, decimals=1),),
        "time",
        PORTABLE + SOUND + CAMERA,
    ),
    Concept(
        "charging time",
        (Noun("charging time", "a"),),
        (
            Measure("hour", 3.5, 0.35, 0.5, 14, decimals=1, share=1.2),
            Measure("minute", 90, 0.25, 12, 480, share=1.0),
        ),
        "time",
        PORTABLE + SOUND + WHEELED + FLYING + CAMERA,
    ),
    Concept(
        "running time",
        (Noun("running time", "a"),),
        (Measure("minute", 55, 0.3, 8, 320),),
        "time",
        CLEANING + FLYING + ("cordless drill",),
    ),
    Concept(
        "storage capacity",
        (
            Noun("storage capacity", "a"),
            Noun("storage"),
        ),
        (Measure("gigabyte", 300, 0.45, 16, 980), Measure("terabyte", 2.5, 0.35, 1, 30, decimals=2, share=0.9)),
        "size",
        STORAGE,
    ),
    Concept(
        "screen size",
        (Noun("screen size", "a"), Noun("screen diagonal", "a")),
        (Measure("inch", 9.5, 0.16, 4.1, 18.4, decimals=1),),
        "size",
        PORTABLE,
    ),
    Concept(
        "screen size",
        (Noun("screen size", "a"), Noun("screen diagonal", "a")),
        (Measure("inch", 38, 0.16, 18.5, 98, decimals=1),),
        "size",
        ("monitor", "television"),
    ),
    Concept(
        "weight",
        (Noun("weight", "a"), Noun("total weight", "a")),
        (
            Measure("gram", 420, 0.35, 60, 2900),
            Measure("pound", 1.6, 0.3, 0.2, 6.5, decimals=2),
        ),
        "mass",
        (*PORTABLE, *SOUND, *CAMERA, "camera drone"),
    ),
    Concept(
        "weight",
        (Noun("weight", "a"), Noun("total weight", "a")),
        (
            Measure("kilogram", 9, 0.3, 1.1, 85, decimals=1),
            Measure("pound", 20, 0.3, 2.4, 190, decimals=1),
        ),
        "mass",
        (*WHEELED, *KITCHEN, *CLEANING, "survey drone", "monitor", "television", "cordless drill"),
    ),
    Concept(
        "maximum load",
        (Noun("maximum load", "a"), Noun("payload", "a")),
        (Measure("kilogram", 60, 0.35, 1.5, 290, decimals=1),),
        "mass",
        WHEELED + FLYING,
    ),
    Concept(
        "top speed",
        (Noun("top speed", "a"),),
        (
            Measure("kilometer/hour", 40, 0.2, 12, 165, decimals=1),
            Measure("mile/hour", 26, 0.2, 8, 105, decimals=1, share=1.0),
        ),
        "motion",
        WHEELED + FLYING,
    ),
    Concept(
        "range",
        (Noun("range", "a"), Noun("maximum range", "a")),
        (
            Measure("kilometer", 55, 0.3, 4, 290, decimals=1),
            Measure("mile", 34, 0.3, 3, 180, decimals=1, share=1.0),
        ),
        "motion",
        WHEELED,
    ),
    Concept(
        "wireless reach",
        (Noun("wireless reach", "a"),),
        (Measure("meter", 40, 0.4, 5, 980),),
        "motion",
        SOUND + CAMERA + FLYING,
    ),
    Concept(
        "resolution",
        (Noun("sensor resolution", "a"), Noun("camera resolution", "a")),
        (Measure("megapixel", 24, 0.3, 2, 200, decimals=1),),
        "size",
        CAMERA + FLYING + ("smartphone", "tablet"),
    ),
    Concept(
        "power consumption",
        (Noun("power consumption", "a"), Noun("power draw", "a")),
        (Measure("watt", 180, 0.5, 2, 2800, decimals=1),),
        "power",
        SCREENS + KITCHEN + CLEANING + ("projector",),
    ),
    Concept(
        "motor power",
        (Noun("motor power", "a"), Noun("motor output", "a")),
        (Measure("watt", 420, 0.35, 35, 5200),),
        "power",
        WHEELED + FLYING + CLEANING + ("blender", "cordless drill"),
    ),
    Concept(
        "battery capacity",
        (Noun("battery capacity", "a"),),
        (Measure("watt_hour", 110, 0.45, 6, 1900, decimals=1),),
        "power",
        PORTABLE + WHEELED + FLYING + SOUND,
    ),
    Concept(
        "noise level",
        (Noun("noise level", "a"), Noun("sound level", "a")),
        (Measure("decibel", 56, 0.08, 21, 94, decimals=1),),
        "power",
        KITCHEN + CLEANING + FLYING + ("projector", "cordless drill"),
    ),
    Concept(
        "brightness",
        (Noun("brightness", "a"), Noun("light output", "a")),
        (Measure("lumen", 1800, 0.35, 90, 9800),),
        "power",
        ("projector", "electric bike", "cargo bike", "electric motorcycle"),
    ),
    Concept(
        "tank volume",
        (Noun("tank volume", "a"), Noun("container volume", "a")),
        (Measure("liter", 2.2, 0.3, 0.3, 14, decimals=1),),
        "size",
        ("coffee machine", "air fryer", "blender", "robot vacuum", "cordless vacuum"),
    ),
    Concept(
        "transfer rate",
        (Noun("transfer rate", "a"), Noun("write speed", "a")),
        (Measure("megabyte/second", 600, 0.4, 25, 7400),),
        "motion",
        STORAGE + CAMERA,
    ),
    Concept(
        "warranty",
        (Noun("warranty", "a"), Noun("warranty period", "a")),
        (
            Measure("month", 32, 0.3, 6, 120, share=1.4),
            Measure("week", 110, 0.3, 12, 520, share=1.2),
        ),
        "service",
    ),
)

ASIDES = (
    Concept(
        "delivery fee",
        (Noun("delivery fee", "a"),),
        (Measure("USD", 18, 0.25, 3, 80, decimals=2), Measure("EUR", 18, 0.25, 3, 80, decimals=2)),
    ),
    Concept(
        "standby time", (Noun("standby time", "a"),), (Measure("hour", 60, 0.3, 8, 400),), "", PORTABLE + SOUND + CAMERA
    ),
    Concept(
        "warm-up time", (Noun("warm-up time", "a"),), (Measure("minute", 5, 0.3, 1, 30),), "", (*KITCHEN, "projector")
    ),
    Concept("memory", (Noun("working memory", "a"),), (Measure("gigabyte", 16, 0.3, 2, 128),), "", STORAGE[:3]),
    Concept(
        "cloud storage",
        (Noun("cloud storage"),),
        (Measure("terabyte", 1.5, 0.2, 1, 6, decimals=1, digits=2),),
        "",
        STORAGE,
    ),
    Concept(
        "frame width", (Noun("frame width", "a"),), (Measure("inch", 0.4, 0.2, 0.1, 1.5, decimals=2),), "", SCREENS
    ),
    Concept(
        "shipping weight",
        (Noun("shipping weight", "a"),),
        (Measure("gram", 900, 0.25, 150, 4900), Measure("pound", 3, 0.25, 0.5, 12, decimals=1)),
        "",
        (*PORTABLE, *SOUND, *CAMERA, "camera drone"),
    ),
    Concept(
        "shipping weight",
        (Noun("shipping weight", "a"),),
        (Measure("kilogram", 14, 0.25, 2, 110, decimals=1), Measure("pound", 31, 0.25, 4, 240, decimals=1)),
        "",
        (*WHEELED, *KITCHEN, *CLEANING, "survey drone", "monitor", "television", "cordless drill"),
    ),
    Concept(
        "reverse speed",
        (Noun("reverse speed", "a"),),
        (Measure("kilometer/hour", 5, 0.2, 2, 12), Measure("mile/hour", 4, 0.2, 2, 9)),
        "",
        WHEELED,
    ),
    Concept(
        "service interval",
        (Noun("service interval", "a"),),
        (Measure("kilometer", 900, 0.2, 200, 3000), Measure("mile", 600, 0.2, 150, 2000)),
        "",
        WHEELED,
    ),
    Concept(
        "standby consumption",
        (Noun("standby consumption", "a"),),
        (Measure("watt", 1.5, 0.3, 0.3, 9, decimals=1),),
        "",
        SCREENS + KITCHEN,
    ),
    Concept("cable length", (Noun("cable length", "a"),), (Measure("meter", 2, 0.15, 1, 6, decimals=1),)),
    Concept(
        "return period",
        (Noun("return period", "a"),),
        (Measure("week", 5, 0.2, 2, 14), Measure("month", 2, 0.15, 1, 4)),
    ),
    Concept(
        "front camera",
        (Noun("front camera", "a"),),
        (Measure("megapixel", 10, 0.2, 2, 48),),
        "",
        ("smartphone", "tablet"),
    ),
)

PATTERNS = (
    Pattern("The {product} has {ac} of {q} and ships with {few} adapters."),
    Pattern("Launched in {year}, the {product} offers {ac} of {q}."),
    Pattern(
        "Where the {product2} disappoints, the {product} scores with {ac} of {q}, our test of {count} models found."
    ),
    Pattern("{product} {host}: {c} {q}, {oc} {oq}, {few} colours."),
    Pattern("While its {oc} is {oq}, the {product}'s {c} is {q}, page {count} says."),
    Pattern("With {ac} of {q}, the {product} finished number {few} among {count} candidates."),
    Pattern(
        "We measured {ac} of {q} on the {product}, although page {count} of the manual says otherwise.",
        ("time", "mass", "size", "motion", "power"),
    ),
    Pattern("Need {ahost} with {ac} of {q}? The {product} comes with {few} spare parts."),
    Pattern("Unchanged for {few} generations, the {product} of {year} has {ac} of {q}."),
    Pattern("At {q}, the {c} of the {product} beat{s} that of {few} rivals we tried in {month}."),
    Pattern("{brand} rates the {c} of its new {host} at {q} and sells it in {count} countries."),
    Pattern("Version {few} of the {host} from {brand} brings {ac} of {q}."),
    Pattern("According to section {section} of the data sheet, the {product} reaches {ac} of {q}."),
    Pattern("{hundreds} owners confirmed that the {product} really has {ac} of {q}."),
    Pattern("Its {c} {is} {q}, its {oc} {oq}: the {product} is no toy."),
    Pattern("Model year {year} of the {product} differs in one point: the {c} {is} now {q}."),
    Pattern(
        "After {weeks} weeks in our lab, the {product} still showed {ac} of {q}.",
        ("time", "mass", "size", "motion", "power"),
    ),
    Pattern("Nobody who bought the {product} in {year} complained about the {c} of {q}."),
    Pattern("{brand} promised {ac} of {q} in {year}, and the {product} keeps that promise."),
    Pattern("Of the {count} listings for {ahost} on our site, only the {product} has {ac} of {q}."),
    Pattern("The {product} of {year} replaces the {product2} and moves the {c} to {q}."),
    Pattern("If {few} stars are not enough for you, take a look at the {product} and its {c} of {q}."),
    Pattern("{reviewer} gave the {product} {count} points out of 100 and praised {ac} of {q}."),
    Pattern("Two things changed after firmware {section}: the menu of the {product} and its {c}, now {q}."),
    Pattern("In row {few} of the comparison table you find the {product} with {ac} of {q}."),
    Pattern("Buyers of the {host} get {ac} of {q}, {few} cables and a bag."),
    Pattern("Order number {thousands}: one {product}, {c} {q}, colour {colour}."),
    Pattern("The {colour} {product}, part number {hundreds}, comes with {ac} of {q}."),
    Pattern("For {month} {year} {brand} has announced {ahost} with {ac} of {q}."),
    Pattern(
        "Even after {hundreds} test cycles, the {product}'s {c} {was} {q}.",
        ("time", "mass", "size", "motion", "power"),
    ),
    Pattern("{reviewer} owned {few} of these before she settled on the {product} for its {c} of {q}."),
    Pattern("The {product} (from {year}) and the {product2} look alike, but only the first has {ac} of {q}."),
    Pattern("Whether {ac} of {q} is enough depends on how many of the {count} functions of the {product} you use."),
    Pattern("Tested {month} {dayofmonth}, {year}: {product}, {host}, {c} {q}."),
    Pattern("Shipments of the {product} began in {year}; {brand} states {ac} of {q}."),
    Pattern("Its predecessor won {few} awards, yet the {product} goes further and has {ac} of {q}."),
    Pattern("You can choose among {few} colours, but {c} stay{s} at {q} for every {product}."),
    Pattern("{brand} built {thousands} units of this {host}, each with {ac} of {q}."),
    Pattern("Question {count}: what {is} the {product}'s {c}? Answer: {q}."),
    Pattern("{ac} of {q} puts the {product} ahead of {percent} of the market."),
    Pattern("Our {host} of the year {year} is the {product}, thanks to {ac} of {q} and {oac} of {oq}."),
    Pattern(
        "The {product} surprised the office, its {c} being {q}, and {few} of our {count} testers would buy it again."
    ),
    Pattern(
        "Technicians who opened the {product} counted {count} screws and noted {ac} of {q}.",
        ("time", "mass", "size", "motion", "power"),
    ),
    Pattern("{reviewer} compared {count} types of {host} in {year} and wrote down {ac} of {q} for the {product}."),
    Pattern("Test bench {few} confirmed it: the {host} has {ac} of {q}.", ("time", "motion", "power")),
    Pattern("On day {few} of the test the {product}'s {c} {was} {q}.", ("time", "motion", "power")),
    Pattern(
        "Update {few} of the specification puts the {c} at {q}, which most owners of the {product} never notice.",
        ("time", "motion", "power"),
    ),
    Pattern(
        "In {month} {year} {brand} moved the {product}'s {c} to {q}.",
        ("cost", "time", "size", "motion", "power", "service"),
    ),
    Pattern("Shops in {count} cities sell the {product} at {ac} of {q}.", ("cost",)),
    Pattern(
        "At launch in {year}, the {product} had {ac} of {q}, and a second battery came free for {few} weeks.",
        ("cost", "time"),
    ),
    Pattern("Once model {count} arrives, dealers expect the {product} to settle at {ac} of {q}.", ("cost", "upkeep")),
    Pattern("Insurance pays {percent} of the bill when the {c} of {ahost} comes to {q}.", ("upkeep",)),
    Pattern("The {product} fits {few} bags that we tried, with {ac} of {q} and {oac} of {oq}.", ("mass", "size")),
    Pattern("{few} people lifted the {product} and guessed wrong: the {c} is {q}.", ("mass",)),
    Pattern("On our scale, number {count} in the workshop, the {product} came to {ac} of {q}.", ("mass",)),
    Pattern("Thanks to frame type {few}, the {host} gets by with {ac} of {q}.", ("mass",)),
    Pattern("The base model of {year} has {ac} of {q}; {few} larger ones cost extra.", ("size",)),
    Pattern("For {count} euros more, choose the {product}, which has {ac} of {q}.", ("size", "power", "service")),
    Pattern("The {product} comes in {few} variants, the largest with {ac} of {q}.", ("size", "power")),
    Pattern("In test {hundreds}, {reviewer} found {ac} of {q} for the {product}.", ("motion",)),
    Pattern("Law {thousands} in {place} applies to any {host} with {ac} of {q}.", ("motion", "power", "mass")),
    Pattern("In {place} the {product} is sold with {ac} of {q} under rule {section}.", ("time", "motion", "power")),
    Pattern("Plugged into socket {few}, the {product} had {ac} of {q} on our meter.", ("power",)),
    Pattern("Over {count} runs, the {product} averaged {ac} of {q}.", ("time", "motion", "power")),
    Pattern(
        "The {ordinal} owner of our {product} from {year} reports {ac} of {q}.", ("time", "cost", "motion", "power")
    ),
    Pattern("The {few} members of the jury liked the {product} for {ac} of {q} and disliked its manual."),
    Pattern("Its {oc} of {oq} aside, the {product} of {year} convinces with {ac} of {q}."),
    Pattern("The {product2} may have {oac} of {oq}, but the {product} has {ac} of {q}."),
    Pattern("{product}, {year}: {oc} {oq}, {c} {q}, {count} reviews."),
    Pattern("Do not mix up the {oc}, which is {oq}, with the {product}'s {c}, which is {q}."),
    Pattern("{brand} prints {oac} of {oq} on the box of this {host}, and on page {few} {ac} of {q}."),
    Pattern("{ahost} with {ac} of {q} and {oac} of {oq} topped the {year} sales chart."),
    Pattern("Besides {oac} of {oq}, the {product} boasts {ac} of {q} and {few} buttons."),
    Pattern("{reviewer} found {oac} of {oq} acceptable and {ac} of {q} excellent for a {year} model."),
    Pattern("The sticker on {product} number {hundreds} says: {oc} {oq}, {c} {q}."),
    Pattern("All {few} trims share {oac} of {oq}; only this one has {ac} of {q}."),
    Pattern("Compared with the {product2} ({oc} {oq}), the {product} stands out for its {c} of {q}."),
)

FILLERS = {
    "product": (
        "{brand} {series} {number}", "{brand} {series} {letter}{number}", "{brand} {series}",
        "{brand} {letter}{number}",
    ),
    "brand": (
        "Nimbra", "Velmora", "Kestrio", "Ostrava Tech", "Lumigen", "Torvex", "Quanta Nord", "Brixel", "Solvani",
        "Hikarune", "Pragma Works", "Zeltron", "Avendi", "Corliss", "Mirabo", "Tarkine", "Vantor", "Ellipta",
        "Gravix", "Jolmar", "Ferrano", "Wystan", "Okuri", "Dravenport",
    ),
    "series": (
        "Aero", "Bolt", "Comet", "Drift", "Echo", "Flux", "Glide", "Halo", "Iris", "Jet", "Lark", "Mono", "Nova",
        "Orbit", "Pulse", "Quill", "Rover", "Spark", "Terra", "Unity", "Vista", "Wave", "Zen",
    ),
    "number": ("3", "5", "7", "9", "12", "15", "20", "30", "50", "64", "100", "120", "250", "300", "500", "700", "900"),
    "reviewer": (
        "Amara Kline", "Freya Lindholm", "Rosa Delgado", "Hana Mori", "Clara Voss", "Nadia Rahman", "Judith Achterberg",
    ),
    "place": ("Norway", "Japan", "Spain", "Ohio", "Bavaria", "Chile", "Ireland", "Taiwan", "Quebec", "Italy"),
    "colour": ("black", "silver", "green", "white", "red", "graphite"),
    "month": ("January", "March", "April", "June", "August", "September", "November", "December"),
    "ordinal": ("second", "third", "fourth"),
}  # fmt: skip

PRODUCTS = Domain(
    name="products",
    hosts=(*PORTABLE, *OTHER, *WHEELED, *FLYING, *SOUND, *KITCHEN, *CLEANING, *CAMERA),
    concepts=CONCEPTS,
    asides=ASIDES,
    patterns=PATTERNS,
    fillers=FILLERS,
)
