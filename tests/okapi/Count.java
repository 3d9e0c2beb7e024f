import java.io.File;
import net.sf.okapi.common.Event;
import net.sf.okapi.common.LocaleId;
import net.sf.okapi.common.filters.IFilter;
import net.sf.okapi.common.resource.RawDocument;
import net.sf.okapi.common.resource.Segment;
import net.sf.okapi.common.resource.TextContainer;
import net.sf.okapi.common.resource.TextFragment;

/**
 * What Okapi finds in files: a line for each, "segments codes target-segments target-codes" of what
 * is not blank, or "- reason" where it cannot read one.
 *
 * <pre>java -cp 'JARS/*' Count.java en fr FILTER FILE... [FILTER FILE...]</pre>
 */
public final class Count {
  public static void main(String[] args) throws Exception {
    LocaleId from = LocaleId.fromBCP47(args[0]);
    LocaleId to = LocaleId.fromBCP47(args[1]);
    String name = "";
    for (int i = 2; i < args.length; i++) {
      if (args[i].startsWith("net.")) {
        name = args[i];
        continue;
      }
      IFilter filter = (IFilter) Class.forName(name).getDeclaredConstructor().newInstance();
      int[] found = new int[4];
      try {
        filter.open(new RawDocument(new File(args[i]).toURI(), "UTF-8", from, to));
        while (filter.hasNext()) {
          Event event = filter.next();
          if (event.isTextUnit()) {
            add(event.getTextUnit().getSource(), found, 0);
            for (LocaleId other : event.getTextUnit().getTargetLocales()) {
              add(event.getTextUnit().getTarget(other), found, 2);
            }
          }
        }
        System.out.println(found[0] + " " + found[1] + " " + found[2] + " " + found[3]);
      } catch (Throwable thrown) {
        System.out.println("- " + ("" + thrown.getMessage()).replaceAll("\\s+", " "));
      } finally {
        filter.close();
      }
    }
  }

  private static void add(TextContainer text, int[] found, int at) {
    for (Segment segment : text.getSegments()) {
      TextFragment content = segment.getContent();
      if (content.hasCode() || !content.getText().isBlank()) {
        found[at]++;
        found[at + 1] += content.getCodes().size();
      }
    }
  }
}
