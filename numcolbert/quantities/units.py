"""Units: how text writes them, what they are called here, and how they convert.

Three families share one naming scheme, pint's: a unit is a product of factors, written ``"milligram / kilogram"`` or
``"meter ** 2"``.

- physical units carry pint's names and pint's conversion factors;
- money carries ISO 4217 codes (names and symbols from Babel); minor coins are ``"USD_cent"``, ``"GBP_penny"``;
- counted things are their own singular noun: ``"patient"``, ``"bag"``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from babel import numbers as babel_numbers

from numcolbert.quantities.nouns import COUNT_NOUNS

if TYPE_CHECKING:
    import pint

Dimensions = tuple[tuple[str, int | float], ...]


class IncompatibleUnitsError(ValueError):
    """Two units that cannot be converted into each other."""


# One row per unit: pint's name, class, case-sensitive symbols, words (plurals are derived unless written as "a|b").
# The order of symbols and words is the order of preference when we write the unit.
_PHYSICAL_ROWS = """
kilometer; length; km; kilometer, kilometre
meter; length; m; meter, metre
centimeter; length; cm; centimeter, centimetre
millimeter; length; mm; millimeter, millimetre
micrometer; length; µm μm um; micrometer, micrometre, micron
nanometer; length; nm; nanometer, nanometre
angstrom; length; Å; angstrom
inch; length; in; inch|inches, ins|ins
foot; length; ft; foot|feet
yard; length; yd yds; yard
mile; length; mi; mile
nautical_mile; length; nmi; nautical mile, sea mile
light_year; length; ly; light year, light-year
fathom; length; ; fathom
metric_ton; mass; t mt MT; tonne, metric ton, metric tonne, mt|mts
kilotonne; mass; kt; kilotonne, kiloton
megatonne; mass; Mt; megatonne, megaton
ton; mass; ; ton, short ton
long_ton; mass; ; long ton
kilogram; mass; kg kgs Kg KG; kilogram, kilo, kilogramme
gram; mass; g gm gms gr; gram, gramme
milligram; mass; mg mgs; milligram, milligramme
microgram; mass; µg μg ug mcg; microgram, microgramme
nanogram; mass; ng; nanogram
picogram; mass; pg; picogram
pound; mass; lb lbs; pound
ounce; mass; oz ozs; ounce
troy_ounce; mass; ozt; troy ounce
hundredweight; mass; cwt; hundredweight|hundredweight
carat; mass; ; carat
dalton; mass; Da; dalton
kilodalton; mass; kDa; kilodalton
year; time; yr yrs; year, yr|yrs
month; time; mo mos mth mths; month, mth|mths
week; time; wk wks; week, wk|wks
day; time; d; day
hour; time; h hr hrs; hour
minute; time; min mins; minute
second; time; s sec secs; second
millisecond; time; ms msec; millisecond
microsecond; time; µs μs; microsecond
nanosecond; time; ns; nanosecond
fortnight; time; ; fortnight
century; time; ; century|centuries
acre; area; ac; acre
hectare; area; ha; hectare
liter; volume; L l; liter, litre, ltr|ltrs
milliliter; volume; mL ml; milliliter, millilitre
microliter; volume; µL μL µl μl uL ul; microliter, microlitre
nanoliter; volume; nL nl; nanoliter, nanolitre
deciliter; volume; dL dl; deciliter, decilitre
centiliter; volume; cL cl; centiliter, centilitre
hectoliter; volume; hL hl; hectoliter, hectolitre
femtoliter; volume; fL fl; femtoliter
cubic_centimeter; volume; cc ccm; cc|ccs
gallon; volume; gal gals; gallon
quart; volume; qt; quart
pint; volume; ; pint
fluid_ounce; volume; ; fluid ounce
barrel; volume; bbl bbls bl; barrel, brl|brls
bushel; volume; bu; bushel, bsh|bsh
cup; volume; ; cup
tablespoon; volume; tbsp; tablespoon
teaspoon; volume; tsp; teaspoon
degree_Celsius; temperature; °C ℃ degC; degree celsius|degrees celsius, degree centigrade|degrees centigrade, celsius|celsius, degree c|degrees c
degree_Fahrenheit; temperature; °F ℉ degF; degree fahrenheit|degrees fahrenheit, fahrenheit|fahrenheit, degree f|degrees f
kelvin; temperature; K; kelvin
degree; angle; ° deg; degree
millimeter_Hg; pressure; mmHg mmhg MmHg torr Torr; mm hg|mm hg, mm of hg|mm of hg, mm of mercury|mm of mercury, millimeter of mercury|millimeters of mercury, millimetre of mercury|millimetres of mercury
centimeter_H2O; pressure; cmH2O; cm of water|cm of water
pascal; pressure; Pa; pascal
hectopascal; pressure; hPa; hectopascal
kilopascal; pressure; kPa; kilopascal
megapascal; pressure; MPa; megapascal
gigapascal; pressure; GPa; gigapascal
bar; pressure; bar; bar
millibar; pressure; mbar; millibar
standard_atmosphere; pressure; atm; atmosphere
pound_force_per_square_inch; pressure; psi; psi|psi
joule; energy; J; joule
kilojoule; energy; kJ; kilojoule
megajoule; energy; MJ; megajoule
gigajoule; energy; GJ; gigajoule
calorie; energy; cal; calorie
kilocalorie; energy; kcal; kilocalorie, kcals|kcals
british_thermal_unit; energy; Btu BTU btu; british thermal unit
watt_hour; energy; Wh; watt hour, watt-hour
kilowatt_hour; energy; kWh kwh KWh; kilowatt hour, kilowatt-hour
megawatt_hour; energy; MWh; megawatt hour, megawatt-hour
gigawatt_hour; energy; GWh; gigawatt hour, gigawatt-hour
terawatt_hour; energy; TWh; terawatt hour, terawatt-hour
electron_volt; energy; eV; electronvolt, electron volt
kiloelectron_volt; energy; keV; 
megaelectron_volt; energy; MeV; 
therm; energy; ; therm
milliwatt; power; mW; milliwatt
watt; power; W; watt
kilowatt; power; kW kw KW; kilowatt
megawatt; power; MW mw; megawatt
gigawatt; power; GW; gigawatt
terawatt; power; TW; terawatt
horsepower; power; hp HP bhp; horsepower|horsepower
knot; speed; kn; knot
bit; data; ; bit
kilobit; data; kbit Kbit kb; kilobit
megabit; data; Mbit Mb; megabit
gigabit; data; Gbit Gb; gigabit
terabit; data; Tbit Tb; terabit
byte; data; ; byte
kilobyte; data; kB KB; kilobyte
megabyte; data; MB; megabyte
gigabyte; data; GB; gigabyte
terabyte; data; TB; terabyte
petabyte; data; PB; petabyte
exabyte; data; EB; exabyte
kibibyte; data; KiB; kibibyte
mebibyte; data; MiB; mebibyte
gibibyte; data; GiB; gibibyte
tebibyte; data; TiB; tebibyte
hertz; frequency; Hz hz; hertz|hertz
kilohertz; frequency; kHz khz; kilohertz|kilohertz
megahertz; frequency; MHz Mhz; megahertz|megahertz
gigahertz; frequency; GHz Ghz; gigahertz|gigahertz
terahertz; frequency; THz; terahertz|terahertz
revolutions_per_minute; frequency; rpm RPM; revolutions per minute|revolutions per minute
volt; electric; V; volt
millivolt; electric; mV; millivolt
microvolt; electric; µV μV; microvolt
kilovolt; electric; kV; kilovolt
ampere; electric; A; ampere, amp
milliampere; electric; mA; milliampere, milliamp
microampere; electric; µA μA; microampere
ohm; electric; Ω; ohm
kiloohm; electric; kΩ; kiloohm, kilohm
megaohm; electric; MΩ; megaohm, megohm
farad; electric; ; farad
microfarad; electric; µF μF; microfarad
picofarad; electric; pF; picofarad
milliampere_hour; electric; mAh; milliampere hour
tesla; magnetic; T; tesla
millitesla; magnetic; mT; millitesla
mole; amount; mol; mole
millimole; amount; mmol mmols; millimole
micromole; amount; µmol μmol umol; micromole
nanomole; amount; nmol; nanomole
picomole; amount; pmol; picomole
femtomole; amount; fmol; femtomole
molar; concentration; M; molar|molar
millimolar; concentration; mM; millimolar|millimolar
micromolar; concentration; µM μM uM; micromolar|micromolar
nanomolar; concentration; nM; nanomolar|nanomolar
picomolar; concentration; pM; picomolar|picomolar
newton; force; N; newton
kilonewton; force; kN; kilonewton
millinewton; force; mN; millinewton
gray; radiation; Gy; gray|gray
centigray; radiation; cGy; centigray|centigray
milligray; radiation; mGy; 
sievert; radiation; Sv; sievert
millisievert; radiation; mSv; millisievert
microsievert; radiation; µSv μSv; microsievert
becquerel; radiation; Bq; becquerel
megabecquerel; radiation; MBq; megabecquerel
curie; radiation; Ci; curie
millicurie; radiation; mCi; millicurie
lux; light; lx; lux|lux
lumen; light; lm; lumen
candela; light; cd; candela
decibel; level; dB; decibel
enzyme_unit; catalysis; U; 
pixel; count; px; pixel
megapixel; count; MP; megapixel
"""

# Units pint does not have. name: (class, factor, dimension, symbols, words)
_OWN_UNITS: dict[str, tuple[str, float, str, str, str]] = {
    "percent": ("percent", 1.0, "percent", "%", "percent|percent, per cent|per cent, pct|pct, pc|pc, p.c.|p.c."),
    "percentage_point": ("percent", 1.0, "percent", "", "percentage point, percent point, percentage-point"),
    "basis_point": ("percent", 0.01, "percent", "bp bps", "basis point, basis-point"),
    "permille": ("percent", 0.1, "percent", "‰", "per mille|per mille, permille|permille"),
    "ppm": ("fraction", 1e-4, "percent", "ppm", "parts per million|parts per million"),
    "ppb": ("fraction", 1e-7, "percent", "ppb", "parts per billion|parts per billion"),
    "international_unit": ("activity", 1.0, "international_unit", "IU iu IE", "international unit"),
    "milli_international_unit": ("activity", 1e-3, "international_unit", "mIU", ""),
    "micro_international_unit": ("activity", 1e-6, "international_unit", "µIU μIU uIU", ""),
    "mega_international_unit": ("activity", 1e6, "international_unit", "MIU", ""),
    "equivalent": ("amount", 1.0, "equivalent", "Eq", ""),
    "milliequivalent": ("amount", 1e-3, "equivalent", "mEq meq mEQ", "milliequivalent"),
    "microequivalent": ("amount", 1e-6, "equivalent", "µEq μEq", ""),
    "osmole": ("amount", 1.0, "osmole", "Osm", "osmole"),
    "milliosmole": ("amount", 1e-3, "osmole", "mOsm mosm mOsmol mosmol", "milliosmole"),
    "dioptre": ("optics", 1.0, "dioptre", "", "diopter, dioptre"),
    "decade": ("time", 315_576_000.0, "second", "", "decade"),  # pint's decade is a factor of ten
    "metabolic_equivalent": ("count", 1.0, "metabolic_equivalent", "", "MET|METs"),
}
"""Percent has a dimension of its own: a share is not comparable with a ratio of lengths or a number of bits."""

_NAMED_DIMENSIONS = {
    "kilogram / meter / second ** 2": "pascal",
    "kilogram * meter ** 2 / second ** 2": "joule",
    "kilogram * meter ** 2 / second ** 3": "watt",
    "1 / second": "hertz",
    "kilogram * meter ** 2 / ampere / second ** 3": "volt",
    "kilogram * meter ** 2 / ampere ** 2 / second ** 3": "ohm",
    "kilogram * meter / second ** 2": "newton",
    "kilogram / ampere / second ** 2": "tesla",
    "bit": "bit",
}
"""Canonical units that have a name of their own; every other dimension is named by its root units."""

_COMPOUND_WORDS = {
    "bpd": "barrel / day",
    "b/d": "barrel / day",
    "bopd": "barrel / day",
    "boepd": "barrel / day",
    "bbl/d": "barrel / day",
    "tpd": "metric_ton / day",
    "tpy": "metric_ton / year",
    "tpa": "metric_ton / year",
    "t/d": "metric_ton / day",
    "mph": "mile / hour",
    "MPH": "mile / hour",
    "kph": "kilometer / hour",
    "kmh": "kilometer / hour",
    "kmph": "kilometer / hour",
    "km/hr": "kilometer / hour",
    "kbps": "kilobit / second",
    "Kbps": "kilobit / second",
    "Mbps": "megabit / second",
    "mbps": "megabit / second",
    "Gbps": "gigabit / second",
    "gbps": "gigabit / second",
    "Tbps": "terabit / second",
    "MBps": "megabyte / second",
    "bpm": "beat / minute",
    "cfm": "foot ** 3 / minute",
    "mpg": "mile / gallon",
    "sqft": "foot ** 2",
    "sqm": "meter ** 2",
    "sqkm": "kilometer ** 2",
}


class Unit(NamedTuple):
    """What one unit name means: the factor (and offset) to its root dimensions."""

    unit_class: str
    factor: float
    offset: float
    dimensions: Dimensions


def _plural(word: str) -> str:
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


SYMBOLS: dict[str, str] = {}
"""Case-sensitive written forms after a number."""
WORDS: dict[str, str] = {}
"""Lower-case written forms after a number, several words joined by one space."""
CLASSES: dict[str, str] = {}
_FORMS: dict[str, list[str]] = {}
_OWN: dict[str, tuple[float, str]] = {}


def _add(name: str, unit_class: str, symbols: str, words: str) -> None:
    CLASSES[name] = unit_class
    forms = _FORMS.setdefault(name, [])
    for symbol in symbols.split():
        SYMBOLS.setdefault(symbol, name)
        forms.append(symbol)
    for word in filter(None, (w.strip() for w in words.split(","))):
        singular, _, plural = word.partition("|")
        plural = plural or _plural(singular)
        WORDS.setdefault(singular.lower().replace("-", " "), name)
        WORDS.setdefault(plural.lower().replace("-", " "), name)
        forms.append(plural)


for _row in _PHYSICAL_ROWS.strip().splitlines():
    _name, _class, _symbols, _words = (part.strip() for part in _row.split(";"))
    if _symbols or _words:
        _add(_name, _class, _symbols, _words)
for _name, (_class, _factor, _dimension, _symbols, _words) in _OWN_UNITS.items():
    _add(_name, _class, _symbols, _words)
    _OWN[_name] = (_factor, _dimension)
for _form, _name in _COMPOUND_WORDS.items():
    if _name:
        SYMBOLS[_form] = _name
        _FORMS.setdefault(_name, []).append(_form)
for _power, _adjectives in ((2, ("square", "sq")), (3, ("cubic", "cu"))):
    for _adjective in _adjectives:
        for _name in ("kilometer", "meter", "centimeter", "millimeter", "inch", "foot", "yard", "mile"):
            for _word in (*_FORMS[_name],):
                WORDS[f"{_adjective} {_word.lower()}"] = f"{_name} ** {_power}"
            WORDS[f"{_adjective} {_name}"] = f"{_name} ** {_power}"
            WORDS[f"{_adjective} {_name.replace('meter', 'metre')}"] = f"{_name} ** {_power}"
            WORDS[f"{_adjective} {_name.replace('meter', 'metres')}"] = f"{_name} ** {_power}"
            _FORMS.setdefault(f"{_name} ** {_power}", []).append(f"{_adjective} {_FORMS[_name][-1]}")

# --- money ----------------------------------------------------------------------------------------------------------

# Words of wire copy and everyday English that Babel does not list. Where a bare word names several currencies
# ("francs", "crowns", "pesos"), the one that English text means by default is taken.
_MONEY_WORDS = {
    "USD": "dollar, dlr, buck, u.s. dollar, u.s. dlr, us dollar, us dlr, american dollar",
    "CAD": "canadian dollar, canadian dlr, cdn dlr, can dlr, cdn dollar",
    "AUD": "australian dollar, australian dlr, aust dlr",
    "NZD": "new zealand dollar, new zealand dlr, n.z. dlr, n.z. dollar, nz dlr",
    "HKD": "hong kong dollar, hong kong dlr, h.k. dlr, h.k. dollar, hk dlr",
    "SGD": "singapore dollar, singapore dlr",
    "TWD": "taiwan dollar, taiwan dlr, new taiwan dollar",
    "GBP": "pound sterling|pounds sterling, stg|stg, sterling|sterling, pound stg|pounds stg, british pound, quid|quid",
    "EUR": "euro",
    "JPY": "yen|yen, japanese yen|japanese yen",
    "CNY": "yuan|yuan, renminbi|renminbi",
    "DEM": "mark, d-mark, deutsche mark, deutschmark, west german mark, german mark, deutschemark",
    "FRF": "franc, french franc, ffr|ffr",
    "CHF": "swiss franc, sfr|sfr",
    "BEF": "belgian franc, bfr|bfr",
    "LUF": "luxembourg franc",
    "NLG": "guilder, dutch guilder, florin",
    "ITL": "lira|lire, italian lira|italian lire, lira|liras",
    "ESP": "peseta, spanish peseta",
    "PTE": "escudo",
    "SEK": "swedish crown, crown, swedish krona|swedish kronor, krona|kronor",
    "NOK": "norwegian crown, norwegian krone|norwegian kroner",
    "DKK": "danish crown, danish krone|danish kroner, krone|kroner",
    "FIM": "markka|markka, finnish mark, finnmark",
    "ATS": "schilling, austrian schilling",
    "GRD": "drachma",
    "IEP": "irish pound, punt",
    "INR": "rupee, indian rupee",
    "PKR": "pakistani rupee, pakistan rupee",
    "LKR": "sri lankan rupee, sri lanka rupee",
    "IDR": "rupiah|rupiah, indonesian rupiah|indonesian rupiah",
    "MYR": "ringgit|ringgit, malaysian dollar, malaysian dlr, malaysian ringgit|malaysian ringgit",
    "THB": "baht|baht",
    "PHP": "philippine peso",
    "KRW": "won|won, south korean won|south korean won, korean won|korean won",
    "SAR": "riyal, saudi riyal",
    "KWD": "kuwaiti dinar, dinar",
    "AED": "dirham, uae dirham",
    "ZAR": "rand|rand, south african rand|south african rand",
    "BRC": "cruzado",
    "BRL": "reais|reais, brazilian real|brazilian reais",
    "MXN": "peso, mexican peso",
    "ARA": "austral|australes, argentine austral|argentine australes",
    "VEB": "bolivar, venezuelan bolivar",
    "COP": "colombian peso",
    "CLP": "chilean peso",
    "PES": "soles|soles",
    "TRY": "turkish lira, turkish lira|turkish lire",
    "ILS": "shekel",
    "EGP": "egyptian pound",
    "RUB": "rouble, ruble",
    "PLN": "zloty",
    "HUF": "forint",
    "NGN": "naira|naira",
    "XDR": "sdr|sdrs, special drawing right",
    "XEU": "ecu|ecus, european currency unit",
    "BTC": "bitcoin",
}
_MONEY_PREFIXES = {
    "USD_cent": "¢",
    "USD": "$ US$ U.S.$",
    "CAD": "C$ CA$ Can$ Cdn$ CDN$",
    "AUD": "A$ AU$ Aus$",
    "NZD": "NZ$",
    "HKD": "HK$",
    "SGD": "S$ SG$",
    "TWD": "NT$ TW$",
    "BRL": "R$",
    "MXN": "MX$",
    "GBP": "£ ₤",
    "EUR": "€",
    "JPY": "¥ JP¥",
    "CNY": "CN¥ RMB",
    "INR": "₹ Rs. Rs Re.",
    "KRW": "₩",
    "ILS": "₪",
    "RUB": "₽",
    "TRY": "₺",
    "UAH": "₴",
    "NGN": "₦",
    "PHP": "₱",
    "VND": "₫",
    "THB": "฿",
    "BTC": "₿",
    "DEM": "DM",
    "CHF": "SFr SFr. Fr. Sfr",
    "FRF": "FFr",
    "NLG": "Dfl",
    "MYR": "RM",
}
_MINOR_COINS = {
    "USD_cent": ("USD", "cent, ct, cnt, u.s. cent, u.s. ct, us cent, us ct", "¢"),
    "CAD_cent": ("CAD", "canadian cent, canadian ct", ""),
    "AUD_cent": ("AUD", "australian cent, australian ct", ""),
    "EUR_cent": ("EUR", "euro cent, eurocent", ""),
    "GBP_penny": ("GBP", "pence|pence, penny|pence, p|p", "p"),
    "DEM_pfennig": ("DEM", "pfennig|pfennigs", ""),
    "INR_paisa": ("INR", "paisa|paise", ""),
}
CURRENCIES = (frozenset(babel_numbers.list_currencies("en")) | {"BTC"}) - {"XTS", "XXX"}
PREFIXES: dict[str, str] = {}
"""Currency signs and codes before a number."""
_PREFIX_FORMS: dict[str, list[str]] = {}
_NOT_CODES = {"ALL", "TOP", "MOP", "TRY", "LAK", "ETB", "BAM", "CUP", "PAB", "SOS", "STD", "XXX", "XTS", "PEN", "GEL"}

for _code, _prefixes in _MONEY_PREFIXES.items():
    for _form in _prefixes.split():
        PREFIXES.setdefault(_form, _code)
        _PREFIX_FORMS.setdefault(_code, []).append(_form)
for _code, _words in _MONEY_WORDS.items():
    _add(_code, "money", "", _words)
for _code in sorted(CURRENCIES):
    CLASSES[_code] = "money"
    _FORMS.setdefault(_code, [])
    if _code not in _NOT_CODES:  # those are also English words or abbreviations
        SYMBOLS.setdefault(_code, _code)
        PREFIXES.setdefault(_code, _code)
        _FORMS[_code].append(_code)
        _PREFIX_FORMS.setdefault(_code, []).append(_code)
    if _code[0] != "X" and _code in babel_numbers.list_currencies("en"):
        for _count in (1, 2):
            _form = babel_numbers.get_currency_name(_code, _count, "en").lower()
            readable = _form.isascii() and _form.replace(" ", "").isalpha() and _form.count(" ") < 4
            if readable and WORDS.setdefault(_form, _code) == _code and _count == 2 and _form not in _FORMS[_code]:
                _FORMS[_code].append(_form)
for _sign, _code in (("$", "USD"), ("€", "EUR"), ("£", "GBP"), ("¥", "JPY"), ("₹", "INR")):
    SYMBOLS[_sign] = _code
    _FORMS[_code].append(_sign)
for _name, (_code, _words, _symbols) in _MINOR_COINS.items():
    _add(_name, "money", _symbols, _words)
    _OWN[_name] = (0.01, _code)

MULTIWORD: dict[str, int] = {}
"""First word of a form of several words: the longest such form, in words."""
for _form in WORDS:
    _pieces = _form.split(" ")
    if len(_pieces) > 1:
        MULTIWORD[_pieces[0]] = max(MULTIWORD.get(_pieces[0], 0), len(_pieces))

# --- unit expressions -----------------------------------------------------------------------------------------------


def compose(factors: dict[str, int]) -> str:
    """Name a product of units as pint does.

    Parameters
    ----------
    factors
        Exponent of each unit name.

    Returns
    -------
    str
        Names in alphabetical order, numerator first.

    Examples
    --------
    >>> compose({"milligram": 1, "kilogram": -1, "day": -1})
    'milligram / day / kilogram'
    >>> compose({"liter": -1})
    '1 / liter'
    """

    def power(name: str, exponent: int) -> str:
        return name if exponent == 1 else f"{name} ** {exponent}"

    above = [power(name, n) for name, n in sorted(factors.items()) if n > 0]
    below = [power(name, -n) for name, n in sorted(factors.items()) if n < 0]
    return " / ".join([" * ".join(above) or "1", *below])


@lru_cache(maxsize=65536)
def decompose(unit: str) -> tuple[tuple[str, int], ...]:
    """Split a unit name into its factors, the reverse of `compose`.

    Parameters
    ----------
    unit
        A unit name; ``"a/b"``, ``"a / b"``, ``"a/(b*c)"`` and ``"a**2"`` are understood.

    Returns
    -------
    tuple of (str, int)
        Unit names and exponents.

    Examples
    --------
    >>> decompose("watt/(meter*kelvin)")
    (('watt', 1), ('meter', -1), ('kelvin', -1))
    """
    factors: dict[str, int] = {}
    sign, group_sign = 1, 1
    for token in re.findall(r"\*\*\s*-?\d+|[/*()]|[^\s/*()](?:[^/*()]*[^\s/*()])?", unit):
        if token.startswith("**"):
            last = next(reversed(factors))
            factors[last] *= int(token[2:])
        elif token == "/":
            sign = -1
        elif token == "*":
            sign = 1
        elif token == "(":
            group_sign, sign = sign, 1
        elif token == ")":
            group_sign = 1
        elif token != "1":
            name = _resolve(token)
            factors[name] = factors.get(name, 0) + sign * group_sign
            sign = 1
        if token not in ("/", "("):
            sign = 1
    return tuple(factors.items())


def _resolve(name: str) -> str:
    if name in CLASSES:
        return name
    found = SYMBOLS.get(name) or WORDS.get(name.lower().replace("_", " "))
    return found if found and found in CLASSES else name


@lru_cache(maxsize=1)
def _registry() -> pint.UnitRegistry:
    import pint  # noqa: PLC0415  (a third of a second; reading text does not need it)

    return pint.UnitRegistry()


@lru_cache(maxsize=4096)
def _lookup(name: str) -> Unit:
    """Root factor of one unit name (no product)."""
    if name in _OWN:
        factor, dimension = _OWN[name]
        return Unit(CLASSES[name], factor, 0.0, ((dimension, 1),))
    unit_class = CLASSES.get(name, "count")
    if unit_class in ("money", "count"):
        return Unit(unit_class, 1.0, 0.0, ((name, 1),))
    registry = _registry()
    if unit_class == "temperature":
        zero, one = (registry.Quantity(x, name).to("kelvin").magnitude for x in (0.0, 1.0))
        return Unit(unit_class, one - zero, zero, (("kelvin", 1),))
    root = registry.Quantity(1.0, name).to_root_units()
    factor = float(root.magnitude)
    return Unit(unit_class, factor, 0.0, tuple(sorted((str(k), v) for k, v in root.unit_items())))


class _Meaning(NamedTuple):
    factor: float
    offset: float
    canonical: str
    unit_class: str


@lru_cache(maxsize=65536)
def _meaning(unit: str) -> _Meaning:
    parts = decompose(unit)
    if len(parts) == 1 and parts[0][1] == 1:
        only = _lookup(parts[0][0])
        return _Meaning(only.factor, only.offset, _canonical_name(dict(only.dimensions)), only.unit_class)
    factor, dimensions, classes = 1.0, dict[str, int | float](), []
    for name, exponent in parts:
        entry = _lookup(name)
        factor *= entry.factor**exponent
        classes.append(entry.unit_class)
        for dimension, power in entry.dimensions:
            dimensions[dimension] = dimensions.get(dimension, 0) + power * exponent
    canonical = _canonical_name({k: v for k, v in dimensions.items() if v})
    unit_class = _CLASS_OF_CANONICAL.get(canonical) or ("money" if classes[:1] == ["money"] else "rate")
    return _Meaning(factor, 0.0, canonical, unit_class)


_CLASS_OF_CANONICAL = {
    "meter ** 2": "area",
    "meter ** 3": "volume",
    "meter / second": "speed",
    "hertz": "frequency",
    "pascal": "pressure",
    "joule": "energy",
    "watt": "power",
    "bit / second": "data rate",
    "kilogram / meter ** 3": "concentration",
    "mole / meter ** 3": "concentration",
    "kilogram / meter ** 2": "body mass index",
    "meter ** 3 / second": "flow",
    "kilogram / second": "flow",
}


def _canonical_name(dimensions: dict[str, int | float]) -> str:
    name = compose({k: int(v) if v == int(v) else v for k, v in dimensions.items()})  # type: ignore[misc]
    return _NAMED_DIMENSIONS.get(name, name)


def canonicalize(value: float, unit: str | None) -> tuple[float, str | None]:
    """Express a value in the canonical unit of its dimension.

    Parameters
    ----------
    value
        Magnitude in `unit`.
    unit
        A unit name as `extract_quantities` returns it, or None for a bare number.

    Returns
    -------
    tuple of (float, str or None)
        Magnitude and canonical unit: root units of pint for physical dimensions, the ISO code for money, percent for
        shares, the noun itself for counted things, None for a bare number.

    Examples
    --------
    >>> canonicalize(12.0, "kilometer")
    (12000.0, 'meter')
    >>> canonicalize(45.0, "USD_cent")
    (0.45, 'USD')
    >>> canonicalize(25.0, "basis_point")
    (0.25, 'percent')
    >>> canonicalize(3.0, "patient")
    (3.0, 'patient')
    """
    if unit is None:
        return value, None
    factor, offset, canonical, _ = _meaning(unit)
    return value * factor + offset, canonical


def compatible(unit_a: str | None, unit_b: str | None) -> bool:
    """Tell whether two units measure the same dimension.

    Parameters
    ----------
    unit_a, unit_b
        Unit names, or None for a bare number.

    Returns
    -------
    bool

    Examples
    --------
    >>> compatible("gigabyte", "terabyte"), compatible("gigabyte", "megabit / second"), compatible("USD", "EUR")
    (True, False, False)
    """
    return canonicalize(1.0, unit_a)[1] == canonicalize(1.0, unit_b)[1]


def convert(value: float, unit: str | None, target: str | None) -> float:
    """Convert a value from one unit to another.

    Parameters
    ----------
    value
        Magnitude in `unit`.
    unit, target
        Unit names, or None for bare numbers.

    Returns
    -------
    float
        Magnitude in `target`.

    Raises
    ------
    IncompatibleUnitsError
        If the two units measure different things.

    Examples
    --------
    >>> convert(1.0, "terabyte", "gigabyte")
    1000.0
    """
    if unit == target:
        return value
    if not compatible(unit, target):
        raise IncompatibleUnitsError(f"cannot convert {unit!r} to {target!r}: they measure different things")
    if unit is None or target is None:
        return value
    a, b = _meaning(unit), _meaning(target)
    return (value * a.factor + a.offset - b.offset) / b.factor


def unit_class(unit: str | None) -> str:
    """Name the coarse class of a unit.

    Parameters
    ----------
    unit
        A unit name, or None.

    Returns
    -------
    str
        ``"money"``, ``"length"``, ``"mass"``, ``"time"``, ``"percent"``, ``"count"`` and so on; ``"number"`` for None.

    Examples
    --------
    >>> unit_class("JPY"), unit_class("millimeter_Hg"), unit_class("patient"), unit_class("meter / second")
    ('money', 'pressure', 'count', 'speed')
    """
    return "number" if unit is None else _meaning(unit).unit_class


# For each class, units that a reader could put in the same place and that yet measure something else.
_CONFUSABLE = {
    "money": ("USD", "EUR", "GBP", "JPY", "CAD", "CHF", "DEM"),
    "length": ("kilogram", "liter", "hour", "acre"),
    "mass": ("liter", "milliliter", "meter", "millimole"),
    "time": ("percent", "kilometer", "kilogram"),
    "percent": ("USD", "year", "kilogram"),
    "area": ("meter", "kilogram", "liter"),
    "volume": ("kilogram", "meter", "metric_ton"),
    "temperature": ("percent", "meter", "pascal"),
    "pressure": ("beat / minute", "degree_Celsius", "millimole / liter"),
    "energy": ("watt", "kilogram", "liter"),
    "power": ("joule", "kilowatt_hour", "volt"),
    "speed": ("meter", "hour", "hertz"),
    "data": ("megabit / second", "hertz", "hour"),
    "data rate": ("gigabyte", "hertz", "hour"),
    "frequency": ("gigabyte", "watt", "meter"),
    "electric": ("watt", "hertz", "meter"),
    "amount": ("milligram", "milliliter", "international_unit"),
    "concentration": ("millimeter_Hg", "percent", "milligram"),
    "activity": ("milligram", "milliliter", "millimole"),
    "count": ("percent", "USD", "kilogram", "year"),
}


def incompatible_units(unit: str) -> tuple[str, ...]:
    """List units that stand where this unit stands but cannot be compared with it.

    Parameters
    ----------
    unit
        A unit name.

    Returns
    -------
    tuple of str
        Other currencies for money; for the rest, common units of neighbouring dimensions.

    Examples
    --------
    >>> incompatible_units("USD")[:3]
    ('EUR', 'GBP', 'JPY')
    >>> incompatible_units("milligram")
    ('liter', 'milliliter', 'meter', 'millimole')
    """
    candidates = _CONFUSABLE.get(unit_class(unit), ("percent", "USD", "kilogram", "year"))
    return tuple(other for other in candidates if not compatible(unit, other))


def surface_forms(unit: str) -> tuple[str, ...]:
    """List how text writes a unit after a number.

    Parameters
    ----------
    unit
        A unit name.

    Returns
    -------
    tuple of str
        Forms that `extract_quantities` reads back as this unit when they follow a number and a space.

    Examples
    --------
    >>> surface_forms("USD")[:2]
    ('dollars', 'dlrs')
    >>> surface_forms("milligram / kilogram")
    ('mg/kg', 'milligrams per kilogram')
    >>> surface_forms("fatality")
    ('fatalities',)
    """
    return _surface_forms(unit)


@lru_cache(maxsize=4096)
def _surface_forms(unit: str) -> tuple[str, ...]:
    forms = [form for form in _FORMS.get(unit, ()) if form not in _UNSAFE_FORMS]
    parts = decompose(unit)
    if not forms and len(parts) == 1 and parts[0][1] == 1:
        forms = [COUNT_NOUNS.plural_of(unit)]
    elif not forms or len(parts) > 1:
        symbols, words = [], []
        for name, exponent in parts:
            names = _surface_forms(name)
            power = str(abs(exponent)) if abs(exponent) > 1 else ""
            slash = "/" if exponent < 0 else ("·" if symbols else "")
            symbols.append(slash + next((f for f in names if SYMBOLS.get(f) == name), names[0]) + power)
            words.append(names[-1] if exponent > 0 else f"per {name.replace('_', ' ')}")
        forms.append("".join(symbols))
        if all(abs(exponent) == 1 for _, exponent in parts) and parts[0][1] > 0 and len(parts) == 2:
            forms.append(" ".join(words))
    return tuple(dict.fromkeys(forms))


_UNSAFE_FORMS = frozenset({"in", "a", "M", "A", "p", "MT", "torr", "Torr", "bl", "gr", "pc", "p.c."})
"""Forms we read in some contexts but never write: they have other readings."""


def prefix_forms(unit: str) -> tuple[str, ...]:
    """List how text writes a unit before a number.

    Parameters
    ----------
    unit
        A unit name.

    Returns
    -------
    tuple of str
        Currency signs and codes, the code with its space; empty for anything but money.

    Examples
    --------
    >>> prefix_forms("USD")
    ('$', 'US$', 'USD ')
    >>> prefix_forms("kilogram")
    ()
    """
    forms = (form for form in _PREFIX_FORMS.get(unit, ()) if "." not in form and form != "INR")
    return tuple(dict.fromkeys(form + " " if form.isalpha() else form for form in forms))
